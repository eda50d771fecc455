// The map through regl-scatterplot.
import { scaleLinear } from 'd3-scale';
import createScatterplot, { createRenderer } from 'regl-scatterplot';
import { install } from './compiled';
import type { Colouring } from './colours';
import type { Make } from './drawing';

export const webgl: Make = async (canvas, points, events, width, height) => {
  install();
  const renderer = createRenderer();
  if (!renderer.isSupported) throw new Error('This browser has no WebGL with float textures.');
  const xScale = scaleLinear([-1, 1], [0, width]);
  const yScale = scaleLinear([-1, 1], [0, height]);
  const size = points.x.length > 50_000 ? 2 : points.x.length > 5_000 ? 3 : points.x.length > 1_000 ? 5 : 7;
  const plot = createScatterplot({
    renderer, canvas, width, height, xScale, yScale, aspectRatio: 1,
    pointSize: size, pointSizeSelected: 3, pointOutlineWidth: 2, opacity: points.x.length > 20_000 ? 0.6 : 0.85,
    lassoMinDelay: 0, lassoMinDist: 2, lassoClearEvent: 'deselect', deselectOnDblClick: false, showReticle: false,
    lassoInitiator: false,
    // The camera looks at a height of 2; on a tall screen it steps back until the width fits as well.
    cameraDistance: Math.max(1, height / width),
  });
  let lassoing = false;
  plot.subscribe('select', ({ points: chosen }) => {
    if (lassoing) events.lasso(Array.from(chosen));
    else if (chosen[0] !== undefined) events.pick(chosen[0]);
  });
  plot.subscribe('view', ({ xScale: x, yScale: y }) => {
    const [left = -1, right = 1] = x?.domain() ?? [];
    const [bottom = -1, top = 1] = y?.domain() ?? [];
    events.window({ left, right, bottom, top });
  });

  return {
    kind: 'webgl',
    drawn: points.x.length,
    async colour(colouring: Colouring, dark: boolean) {
      const accent = dark ? '#ffffff' : '#000000';
      plot.set({
        colorBy: 'valueA', pointColor: [...colouring.palette], pointColorActive: accent, pointColorHover: accent,
        backgroundColor: dark ? '#16191c' : '#ffffff', lassoColor: dark ? '#72b1fa' : '#0a5ec2',
      });
      await plot.draw({ x: points.x, y: points.y, valueA: colouring.codes }, { zDataType: 'categorical', preventFilterReset: true });
    },
    mode(lasso) {
      lassoing = lasso;
      plot.set({ mouseMode: lasso ? 'lasso' : 'panZoom' });
    },
    select(indices) {
      if (indices.length) plot.select([...indices], { preventEvent: true });
      else plot.deselect({ preventEvent: true });
    },
    zoom({ left, right, bottom, top }) {
      void plot.zoomToArea({ x: left, y: bottom, width: right - left, height: top - bottom });
    },
    resize: (w, h) => plot.set({ width: w, height: h }),
    destroy() {
      plot.destroy();
      renderer.destroy();
    },
  };
};
