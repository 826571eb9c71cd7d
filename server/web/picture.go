package web

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// maxImage is the largest image that is shown, in bytes of base64.
const maxImage = 24 << 20

// imagesOf is all pictures and documents of a line, those in tool results too, in their order.
func imagesOf(l server.Line) []transcript.Block {
	var out []transcript.Block
	for _, rec := range records(l) {
		if rec.Message != nil {
			out = appendImages(out, rec.Message.Blocks())
		}
	}
	return out
}

func appendImages(out, blocks []transcript.Block) []transcript.Block {
	for _, x := range blocks {
		if x.Kind == transcript.ImageBlock || x.Kind == transcript.DocumentBlock {
			out = append(out, x)
		}
		out = appendImages(out, x.Content)
	}
	return out
}

// numberOf is the place of x, whose data points into the line the list is of; -1 when it is not there.
func numberOf(x transcript.Block, list []transcript.Block) int {
	for i, y := range list {
		if len(x.Data) > 0 && len(y.Data) > 0 && &x.Data[0] == &y.Data[0] {
			return i
		}
	}
	return -1
}

// imageKind is the media type of an image that browsers show without harm; "" for any other. It is found out from the
// bytes: what the record says is only a claim. SVG, which can hold scripts, is none of them.
func imageKind(x transcript.Block) string {
	if x.Kind != transcript.ImageBlock || len(x.Data) > maxImage {
		return ""
	}
	head, err := decodeImage(x.Data[:min(len(x.Data), 1024)&^3])
	if err != nil {
		return ""
	}
	switch kind := http.DetectContentType(head); kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return kind
	}
	return ""
}

// decodeImage reads base64 as it stands in a JSON string, where a slash may be escaped.
func decodeImage(data []byte) ([]byte, error) {
	if bytes.IndexByte(data, '\\') >= 0 {
		data = bytes.ReplaceAll(data, []byte{'\\'}, nil)
		data = data[:len(data)&^3]
	}
	out := make([]byte, base64.StdEncoding.DecodedLen(len(data)))
	n, err := base64.StdEncoding.Decode(out, data)
	if err != nil {
		return nil, fmt.Errorf("read image: %w", err)
	}
	return out[:n], nil
}

// svgSource is an SVG image's text.
func svgSource(x transcript.Block) (string, bool) {
	if !strings.Contains(strings.ToLower(x.MediaType), "svg") || len(x.Data) > maxImage {
		return "", false
	}
	b, err := decodeImage(x.Data)
	if err != nil {
		return "", false
	}
	return string(b), true
}

// image is GET /sessions/{id}/image/{line}/{n}: an image of a line. It comes with a policy of its own, so that even
// opened alone it can do nothing.
func (v *Viewer) image(w http.ResponseWriter, r *http.Request, who server.Login) error {
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil {
		return server.ErrNotFound
	}
	l, _, err := v.readLine(r, who, false)
	if err != nil {
		return err
	}
	list := imagesOf(l.Line)
	if n < 0 || n >= len(list) {
		return server.ErrNotFound
	}
	kind := imageKind(list[n])
	if kind == "" {
		return server.ErrNotFound
	}
	b, err := decodeImage(list[n].Data)
	if err != nil {
		return server.ErrNotFound
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "private, max-age=86400")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b) // a browser that has gone is told nothing
	return nil
}
