// The HTTP client: typed by the generated schema, and every refusal turned into one error with its hint.
import createClient from 'openapi-fetch';
import type { components, paths } from './schema';

export type Schemas = components['schemas'];
export const api = createClient<paths>({ baseUrl: '' });

export class Refused extends Error {
  readonly hint: string;
  readonly status: number;
  readonly job: string | null;
  constructor(message: string, hint = '', status = 0, job: string | null = null) {
    super(message);
    this.name = 'Refused';
    this.hint = hint;
    this.status = status;
    this.job = job;
  }
}

interface Reply<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The answer, or a Refused that names what is wrong and the next step. */
export async function ok<T>(asked: Promise<Reply<T>>): Promise<T> {
  let reply: Reply<T>;
  try {
    reply = await asked;
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Refused('The server does not answer.', 'Start it again: lookalike serve');
  }
  if (reply.data !== undefined && reply.response.ok) return reply.data;
  throw refusal(reply.error, reply.response.status);
}

export function refusal(body: unknown, status: number): Refused {
  const problem = (typeof body === 'object' && body !== null ? body : {}) as Partial<Schemas['Problem']>;
  const detail = problem.detail ?? `The server answered ${status}.`;
  const fields = (problem.errors ?? []).map((each) => each['message'] ?? each['msg']).filter(Boolean);
  return new Refused([detail, ...fields].join(' '), problem.hint ?? '', status, problem.job ?? null);
}

/** Bytes of a binary column. */
export async function bytes(url: string, signal?: AbortSignal): Promise<ArrayBuffer> {
  let response: Response;
  try {
    response = await fetch(url, signal ? { signal } : {});
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Refused('The server does not answer.', 'Start it again: lookalike serve');
  }
  if (!response.ok) throw refusal(await response.json().catch(() => null), response.status);
  return response.arrayBuffer();
}

/** Search, with pictures where there are some (then as multipart, which the generated client does not write). */
export async function search(
  request: Schemas['SearchRequest'],
  pictures: readonly Blob[],
  signal: AbortSignal,
): Promise<Schemas['SearchResponse']> {
  const form = new FormData();
  form.append('request', JSON.stringify(request));
  pictures.forEach((picture, n) => form.append('pictures', picture, picture instanceof File ? picture.name : `picture-${n}`));
  const how: RequestInit = pictures.length
    ? { method: 'POST', body: form, signal }
    : { method: 'POST', body: JSON.stringify(request), headers: { 'Content-Type': 'application/json' }, signal };
  let response: Response;
  try {
    response = await fetch('/api/v1/search', how);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Refused('The server does not answer.', 'Start it again: lookalike serve');
  }
  const body: unknown = await response.json().catch(() => null);
  if (!response.ok) throw refusal(body, response.status);
  return body as Schemas['SearchResponse'];
}

/** The address of an item's small picture where only its number is known. */
export function thumbOf(id: number): string {
  return `/api/v1/items/${id}/thumb`;
}
