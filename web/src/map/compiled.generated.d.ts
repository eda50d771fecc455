export const COMPILED: Readonly<Record<string, (...linked: unknown[]) => unknown>>;
