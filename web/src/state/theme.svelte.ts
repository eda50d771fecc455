// Dark or light: the system's choice until the switch is used, then the switch's, remembered in this browser.
type Choice = 'system' | 'light' | 'dark';
const KEY = 'lookalike-theme';

class Theme {
  choice = $state<Choice>('system');
  dark = $state(false);

  start(): void {
    const system = window.matchMedia('(prefers-color-scheme: dark)');
    const stored = read();
    this.choice = stored === 'light' || stored === 'dark' ? stored : 'system';
    const apply = () => {
      this.dark = this.choice === 'dark' || (this.choice === 'system' && system.matches);
      document.documentElement.dataset['theme'] = this.dark ? 'dark' : 'light';
    };
    system.addEventListener('change', apply);
    this.#apply = apply;
    apply();
  }

  #apply: () => void = () => undefined;

  toggle(): void {
    this.choice = this.dark ? 'light' : 'dark';
    try {
      localStorage.setItem(KEY, this.choice);
    } catch {
      // A browser that stores nothing still switches, for this visit.
    }
    this.#apply();
  }
}

function read(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export const theme = new Theme();
