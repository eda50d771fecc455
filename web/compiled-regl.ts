// regl writes the functions that draw at run time, from text; the page's content-security policy forbids that, rightly.
// So regl's one call of `Function` is replaced by a look-up in src/map/compiled.generated.js, which holds the functions
// it would have made (`npm run shaders` writes it anew after a change of regl, regl-scatterplot or the map's options).
import type { Plugin } from 'vite';

const CALL = 'Function.apply(null, linkedNames.concat(src))';

export function compiledRegl(): Plugin {
  return {
    name: 'compiled-regl',
    enforce: 'pre',
    transform(code, id) {
      if (!/\/regl\/dist\/regl\.js(\?|$)/.test(id)) return null;
      if (!code.includes(CALL)) throw new Error(`regl has changed: ${CALL} is not in ${id}`);
      return { code: code.replace(CALL, 'globalThis.lookalikeCompiled(linkedNames, src)'), map: null };
    },
  };
}
