// What regl would compile from text at run time, looked up instead: see compiled-regl.ts.
import { COMPILED } from './compiled.generated.js';

type Made = (...linked: unknown[]) => unknown;
interface Hooks {
  lookalikeCompiled?: (names: readonly string[], source: string) => Made;
  /** Set by `npm run shaders`, which opens the page without its policy. */
  lookalikeRecord?: (key: string, names: readonly string[], source: string) => Made;
}

/** FNV-1a over the text, twice with different seeds: 64 bits in 16 hex digits. */
export function keyOf(names: readonly string[], source: string): string {
  const text = `${names.join(',')}|${source}`;
  const half = (seed: number) => {
    let hash = seed;
    for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 16777619);
    return (hash >>> 0).toString(16).padStart(8, '0');
  };
  return half(0x811c9dc5) + half(0x1b873593);
}

export function install(): void {
  const hooks = globalThis as Hooks;
  hooks.lookalikeCompiled = (names, source) => {
    const key = keyOf(names, source);
    const made = hooks.lookalikeRecord?.(key, names, source) ?? COMPILED[key];
    if (!made) throw new Error(`This graphics driver needs a drawing function that was not prepared (${key}).`);
    return made;
  };
}
