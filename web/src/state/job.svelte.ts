// A piece of long work on the server, watched through its event stream.
import { api, ok, Refused, refusal, type Schemas } from '../api/client';

type Started = Promise<{ data?: Schemas['JobStarted']; error?: unknown; response: Response }>;

export class Watch {
  state = $state<'idle' | Schemas['Job']['state']>('idle');
  done = $state(0);
  total = $state<number | null>(null);
  text = $state('');
  epochs = $state.raw<Record<string, unknown>[]>([]);
  result = $state.raw<Record<string, unknown> | null>(null);
  problem = $state.raw<Refused | null>(null);
  #id = '';
  #source: EventSource | null = null;

  get running(): boolean {
    return this.state === 'running' || this.state === 'cancelling';
  }

  /** Start a job and follow it; where one of its kind is running already, follow that one. */
  async start(asked: Started, finished?: (result: Record<string, unknown>) => void): Promise<void> {
    this.close();
    Object.assign(this, { state: 'running', text: 'starting', epochs: [], result: null, problem: null, done: 0, total: null });
    try {
      const started = await ok(asked);
      this.#follow(started.job, finished);
    } catch (error) {
      const problem = error instanceof Refused ? error : new Refused(String(error));
      this.state = 'failed';
      this.problem = problem;
    }
  }

  cancel(): void {
    if (this.#id) void api.DELETE('/api/v1/jobs/{number}', { params: { path: { number: this.#id } } });
    this.text = 'cancelling';
  }

  close(): void {
    this.#source?.close();
    this.#source = null;
  }

  #follow(id: string, finished?: (result: Record<string, unknown>) => void): void {
    this.#id = id;
    const source = new EventSource(`/api/v1/jobs/${id}/events`);
    this.#source = source;
    const read = (event: MessageEvent<string>) => JSON.parse(event.data) as Schemas['JobEvent'];
    source.addEventListener('progress', (event) => this.#note(read(event)));
    source.addEventListener('epoch', (event) => {
      const { data } = read(event);
      if (data) this.epochs = [...this.epochs, data];
    });
    for (const end of ['done', 'failed', 'cancelled'] as const) {
      source.addEventListener(end, (event) => {
        source.close();
        const { data } = read(event);
        this.state = end;
        if (end === 'failed') this.problem = refusal(data, 500);
        if (end === 'done' && data) {
          this.result = data;
          finished?.(data);
        }
      });
    }
    source.onerror = () => {
      if (source.readyState !== EventSource.CLOSED) return;
      this.state = 'failed';
      this.problem = new Refused('The connection to the server is gone.', 'Start it again: lookalike serve');
    };
  }

  #note(event: Schemas['JobEvent']): void {
    if (!event.progress) return;
    this.done = event.progress.done;
    this.total = event.progress.total ?? null;
    this.text = event.progress.text;
  }
}
