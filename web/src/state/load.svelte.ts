// One answer on its way: its data, its refusal, whether it is still coming. A newer question drops an older answer.
import { Refused } from '../api/client';

export class Loading<T> {
  data = $state.raw<T | null>(null);
  problem = $state.raw<Refused | null>(null);
  busy = $state(false);
  #controller: AbortController | null = null;

  async run(ask: (signal: AbortSignal) => Promise<T>): Promise<T | null> {
    this.#controller?.abort();
    const controller = new AbortController();
    this.#controller = controller;
    this.busy = true;
    try {
      const data = await ask(controller.signal);
      if (this.#controller !== controller) return null;
      this.data = data;
      this.problem = null;
      return data;
    } catch (error) {
      if (this.#controller !== controller) return null;
      if (error instanceof DOMException && error.name === 'AbortError') return null;
      this.problem = error instanceof Refused ? error : new Refused(String(error));
      return null;
    } finally {
      if (this.#controller === controller) this.busy = false;
    }
  }

  clear(): void {
    this.#controller?.abort();
    this.#controller = null;
    this.data = null;
    this.problem = null;
    this.busy = false;
  }
}
