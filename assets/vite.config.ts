import { createHash } from "node:crypto";
import { defineConfig, type Plugin } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

// What the page may do: run the script and the style that stand in it. Their hashes are known when all of it is one file.
const policy = (): Plugin => ({
  name: "witness-policy",
  enforce: "post",
  generateBundle: {
    order: "post",
    handler(_, bundle) {
      for (const file of Object.values(bundle)) {
        if (file.type !== "asset" || !file.fileName.endsWith(".html")) continue;
        const html = String(file.source);
        const hashes = (element: RegExp) =>
          [...html.matchAll(element)]
            .map(
              ([, text]) =>
                `'sha256-${createHash("sha256")
                  .update(text ?? "")
                  .digest("base64")}'`,
            )
            .join(" ");
        const scripts = hashes(/<script type="module"[^>]*>([\s\S]*?)<\/script>/g);
        const styles = hashes(/<style[^>]*>([\s\S]*?)<\/style>/g);
        if (!scripts || !styles || !html.includes("@POLICY@")) this.error("the page has no script, style or policy");
        file.source = html.replace(
          "@POLICY@",
          `default-src 'none'; script-src ${scripts}; style-src ${styles}; base-uri 'none'; form-action 'none'`,
        );
      }
    },
  },
});

export default defineConfig({
  publicDir: false,
  plugins: [viteSingleFile({ removeViteModuleLoader: true }), policy()],
  build: { outDir: "../priv/web", emptyOutDir: false, rolldownOptions: { input: "report.html" }, reportCompressedSize: false },
});
