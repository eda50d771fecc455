// The catalogue this page is of: asked for once, again when something has changed it.
import { api, ok, type Schemas } from '../api/client';
import { Loading } from './load.svelte';

class Shop {
  readonly loading = new Loading<Schemas['CatalogueInfo']>();

  get info(): Schemas['CatalogueInfo'] | null {
    return this.loading.data;
  }

  refresh(): void {
    void this.loading.run((signal) => ok(api.GET('/api/v1/catalogue', { signal })));
  }

  /** Columns that name things: what may be a label. */
  get labels(): string[] {
    const own = (this.info?.columns ?? []).filter((each) => !each.builtin);
    return own.filter((each) => each.type === 'text' || each.type === 'integer').map((each) => each.name);
  }

  get label(): string {
    return this.info?.label ?? 'label';
  }

  get pictures(): boolean {
    return this.info?.root !== null;
  }
}

export const shop = new Shop();
