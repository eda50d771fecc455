/* eslint-disable svelte/prefer-svelte-reactivity -- URLSearchParams only reads and writes text here */
// Where the page is, kept in its address: #/map?colour=label. A copied address shows the same thing.
export const SCREENS = ['search', 'catalogue', 'map', 'triplets', 'evaluate', 'indexes', 'train'] as const;
export type Screen = (typeof SCREENS)[number];
export type Params = Record<string, string>;

export function parse(hash: string): { screen: Screen; params: Params } {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split('?');
  const screen = SCREENS.find((each) => each === path) ?? 'search';
  return { screen, params: Object.fromEntries(new URLSearchParams(query)) };
}

export function format(screen: Screen, params: Params): string {
  const query = new URLSearchParams(params).toString();
  return `#/${screen}${query ? `?${query}` : ''}`;
}

class Place {
  screen = $state<Screen>('search');
  params = $state.raw<Params>({});

  constructor() {
    if (typeof window === 'undefined') return;
    this.#read();
    window.addEventListener('hashchange', () => this.#read());
    window.addEventListener('popstate', () => this.#read());
  }

  #read(): void {
    const { screen, params } = parse(window.location.hash);
    this.screen = screen;
    this.params = params;
  }

  get(name: string, fallback = ''): string {
    return this.params[name] ?? fallback;
  }

  number(name: string, fallback: number): number {
    const value = Number(this.params[name] ?? NaN);
    return Number.isFinite(value) ? value : fallback;
  }

  on(name: string): boolean {
    return this.params[name] === '1';
  }

  /** Change some parameters; empty, null and false ones are left out of the address. */
  set(changes: Record<string, string | number | boolean | null>, how: 'push' | 'replace' = 'replace'): void {
    const kept = Object.entries({ ...this.params, ...changes })
      .filter(([, value]) => value !== null && value !== '' && value !== false)
      .map(([name, value]) => [name, value === true ? '1' : String(value)]);
    this.#write(this.screen, Object.fromEntries(kept) as Params, how);
  }

  go(screen: Screen, params: Params = {}): void {
    this.#write(screen, params, 'push');
  }

  #write(screen: Screen, params: Params, how: 'push' | 'replace'): void {
    const address = format(screen, params);
    if (address === window.location.hash) return;
    if (how === 'push') history.pushState(null, '', address);
    else history.replaceState(null, '', address);
    this.screen = screen;
    this.params = params;
  }
}

export const place = new Place();
