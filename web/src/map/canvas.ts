// The map on a plain canvas, for browsers without WebGL: up to 50,000 points, a seeded sample of more.
import type { Colouring } from './colours';
import type { Make } from './drawing';
import { lassoed, nearest, type Points, type Window } from './geometry';

export const MOST = 50_000;

export const plain: Make = async (canvas, points, events, width, height) => {
  const context = canvas.getContext('2d');
  if (!context) throw new Error('This browser has no canvas.');
  const shown = sample(points.x.length, MOST);
  let size = { width, height };
  let centre = { x: 0, y: 0 };
  let half = 1;
  let lassoing = false;
  let polygon: number[] = [];
  let colouring: Colouring | null = null;
  let dark = false;
  let chosen: readonly number[] = [];
  let frame = 0;
  let down: { x: number; y: number; cx: number; cy: number } | null = null;
  const ratio = Math.min(2, window.devicePixelRatio || 1);

  const unit = () => Math.min(size.width, size.height) / 2 / half;
  const view = (): Window => ({
    left: centre.x - size.width / 2 / unit(), right: centre.x + size.width / 2 / unit(),
    bottom: centre.y - size.height / 2 / unit(), top: centre.y + size.height / 2 / unit(),
  });
  const toMap = (event: PointerEvent | WheelEvent) => {
    const box = canvas.getBoundingClientRect();
    const seen = view();
    return { x: seen.left + (event.clientX - box.left) / unit(), y: seen.top - (event.clientY - box.top) / unit() };
  };

  function paint() {
    frame = 0;
    if (!context || !colouring) return;
    const u = unit();
    const seen = view();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = dark ? '#16191c' : '#ffffff';
    context.fillRect(0, 0, size.width, size.height);
    const r = shown.length > 20_000 ? 2 : shown.length > 2_000 ? 3 : 5;
    const place = (at: number) => [((points.x[at] ?? 0) - seen.left) * u, (seen.top - (points.y[at] ?? 0)) * u] as const;
    for (let code = 0; code < colouring.palette.length; code += 1) {
      context.fillStyle = colouring.palette[code] ?? '#888888';
      for (const at of shown) {
        if (colouring.codes[at] !== code) continue;
        const [px, py] = place(at);
        if (px > -r && py > -r && px < size.width + r && py < size.height + r) context.fillRect(px - r / 2, py - r / 2, r, r);
      }
    }
    context.strokeStyle = dark ? '#ffffff' : '#000000';
    context.lineWidth = 1.5;
    for (const at of chosen.slice(0, 5_000)) {
      const [px, py] = place(at);
      context.strokeRect(px - r, py - r, 2 * r, 2 * r);
    }
    if (polygon.length > 2) {
      context.strokeStyle = dark ? '#72b1fa' : '#0a5ec2';
      context.beginPath();
      for (let at = 0; at < polygon.length; at += 2) {
        context.lineTo(((polygon[at] ?? 0) - seen.left) * u, (seen.top - (polygon[at + 1] ?? 0)) * u);
      }
      context.stroke();
    }
  }
  const soon = () => {
    frame ||= requestAnimationFrame(paint);
  };
  const moved = () => {
    events.window(view());
    soon();
  };

  const handlers = {
    pointerdown(event: PointerEvent) {
      canvas.setPointerCapture(event.pointerId);
      down = { x: event.clientX, y: event.clientY, cx: centre.x, cy: centre.y };
      const at = toMap(event);
      polygon = lassoing ? [at.x, at.y] : [];
    },
    pointermove(event: PointerEvent) {
      if (!down) return;
      const at = toMap(event);
      if (lassoing) {
        polygon.push(at.x, at.y);
        soon();
        return;
      }
      centre = { x: down.cx - (event.clientX - down.x) / unit(), y: down.cy + (event.clientY - down.y) / unit() };
      moved();
    },
    pointerup(event: PointerEvent) {
      if (!down) return;
      const still = Math.hypot(event.clientX - down.x, event.clientY - down.y) < 4;
      const at = toMap(event);
      down = null;
      if (lassoing && polygon.length >= 6) events.lasso(lassoed(points, polygon));
      else if (still) {
        const found = nearest(points, at.x, at.y, 10 / unit());
        if (found >= 0) events.pick(found);
      }
      soon();
    },
    wheel(event: WheelEvent) {
      event.preventDefault();
      const before = toMap(event);
      half = Math.max(1e-4, Math.min(2, half * Math.exp(event.deltaY / 400)));
      const after = toMap(event);
      centre = { x: centre.x + before.x - after.x, y: centre.y + before.y - after.y };
      moved();
    },
  };
  canvas.addEventListener('pointerdown', handlers.pointerdown);
  canvas.addEventListener('pointermove', handlers.pointermove);
  canvas.addEventListener('pointerup', handlers.pointerup);
  canvas.addEventListener('wheel', handlers.wheel, { passive: false });

  function fit(w: number, h: number) {
    size = { width: w, height: h };
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(h * ratio);
    moved();
  }
  fit(width, height);

  return {
    kind: 'canvas',
    drawn: shown.length,
    async colour(next, isDark) {
      colouring = next;
      dark = isDark;
      soon();
    },
    mode(lasso) {
      lassoing = lasso;
      polygon = [];
      soon();
    },
    select(indices) {
      chosen = indices;
      if (!indices.length) polygon = [];
      soon();
    },
    zoom(next) {
      centre = { x: (next.left + next.right) / 2, y: (next.bottom + next.top) / 2 };
      half = Math.min(next.right - next.left, next.top - next.bottom) / 2;
      moved();
    },
    resize: fit,
    destroy() {
      cancelAnimationFrame(frame);
      canvas.removeEventListener('pointerdown', handlers.pointerdown);
      canvas.removeEventListener('pointermove', handlers.pointermove);
      canvas.removeEventListener('pointerup', handlers.pointerup);
      canvas.removeEventListener('wheel', handlers.wheel);
    },
  };
};

/** Every n-th point: the same ones each time. */
export function sample(n: number, most: number): Uint32Array {
  if (n <= most) return Uint32Array.from({ length: n }, (_, at) => at);
  return Uint32Array.from({ length: most }, (_, at) => Math.floor((at * n) / most));
}

export type { Points };
