// Arrow keys move the focus through pictures laid out in rows.
export function arrows(node: HTMLElement, selector: string): { destroy: () => void } {
  function key(event: KeyboardEvent) {
    if (!event.key.startsWith('Arrow') && event.key !== 'Home' && event.key !== 'End') return;
    const target = event.target as HTMLElement;
    if (!target.matches(selector)) return;
    const all = Array.from(node.querySelectorAll<HTMLElement>(selector));
    const next = all[step(all, all.indexOf(target), event.key)];
    if (!next) return;
    event.preventDefault();
    next.focus();
    next.scrollIntoView({ block: 'nearest' });
  }
  node.addEventListener('keydown', key);
  return { destroy: () => node.removeEventListener('keydown', key) };
}

function step(all: readonly HTMLElement[], at: number, key: string): number {
  if (key === 'Home') return 0;
  if (key === 'End') return all.length - 1;
  if (key === 'ArrowRight') return at + 1;
  if (key === 'ArrowLeft') return at - 1;
  const wide = across(all);
  return key === 'ArrowDown' ? at + wide : at - wide;
}

function across(all: readonly HTMLElement[]): number {
  const top = all[0]?.getBoundingClientRect().top;
  const next = all.findIndex((each) => Math.abs(each.getBoundingClientRect().top - (top ?? 0)) > 4);
  return next === -1 ? all.length : next;
}
