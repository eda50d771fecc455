// The two ways to draw the map behind one interface: WebGL through regl-scatterplot, and a plain canvas.
import type { Colouring } from './colours';
import type { Points, Window } from './geometry';

export interface Events {
  pick: (index: number) => void;
  lasso: (indices: number[]) => void;
  window: (window: Window) => void;
}

export interface Drawing {
  readonly kind: 'webgl' | 'canvas';
  readonly drawn: number;
  colour: (colouring: Colouring, dark: boolean) => Promise<void>;
  mode: (lasso: boolean) => void;
  select: (indices: readonly number[]) => void;
  zoom: (window: Window) => void;
  resize: (width: number, height: number) => void;
  destroy: () => void;
}

export type Make = (canvas: HTMLCanvasElement, points: Points, events: Events, width: number, height: number) => Promise<Drawing>;
