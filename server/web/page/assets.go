package page

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
)

// file is an asset that browsers fetch.
type file struct {
	body    []byte
	kind    string
	version string // hash of its content, part of its address
}

// readFiles reads the style sheet, the script and the icon.
func readFiles(assets fs.FS) (map[string]file, error) {
	kinds := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
		".svg": "image/svg+xml"}
	list, err := fs.ReadDir(assets, "assets")
	if err != nil {
		return nil, fmt.Errorf("list assets: %w", err)
	}
	out := map[string]file{}
	for _, e := range list {
		kind := kinds[path.Ext(e.Name())]
		if kind == "" {
			continue
		}
		b, err := fs.ReadFile(assets, "assets/"+e.Name())
		if err != nil {
			return nil, fmt.Errorf("read asset: %w", err)
		}
		sum := sha256.Sum256(b)
		out[e.Name()] = file{b, kind, base64.RawURLEncoding.EncodeToString(sum[:9])}
	}
	return out, nil
}

// Asset is GET /assets/{name}.
func (s *Site) Asset(w http.ResponseWriter, r *http.Request) {
	f, ok := s.files[r.PathValue("name")]
	if !ok {
		s.Fail(w, r, http.StatusNotFound, "No such file.")
		return
	}
	w.Header().Set("Content-Type", f.kind)
	if r.URL.Query().Get("v") == f.version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(f.body) // the browser may be gone
}

// Style returns the style sheet. The caller does not change it.
func (s *Site) Style() []byte { return s.files["style.css"].body }

// assetURL returns an asset's address, which changes with its content.
func (s *Site) assetURL(name string) string {
	return s.Base + "/assets/" + name + "?v=" + url.QueryEscape(s.files[name].version)
}
