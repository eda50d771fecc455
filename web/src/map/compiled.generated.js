export const COMPILED = {};
