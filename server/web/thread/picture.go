package thread

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// maxImage is the largest image that is shown, in bytes of base64.
const maxImage = 24 << 20

// Images returns all pictures and documents of a line, those in tool results too, in their order.
func Images(l server.Line) []transcript.Block {
	var out []transcript.Block
	for _, rec := range Records(l) {
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

// numberOf returns the position of x, whose data points into the line the list is of; -1 when it is not there.
func numberOf(x transcript.Block, list []transcript.Block) int {
	for i, y := range list {
		if len(x.Data) > 0 && len(y.Data) > 0 && &x.Data[0] == &y.Data[0] {
			return i
		}
	}
	return -1
}

// Decoded returns an image of a line with its media type. server.ErrNotFound for one that is not there or not shown.
func Decoded(l server.Line, n int) (kind string, picture []byte, err error) {
	list := Images(l)
	if n < 0 || n >= len(list) {
		return "", nil, server.ErrNotFound
	}
	if kind = ImageType(list[n]); kind == "" {
		return "", nil, server.ErrNotFound
	}
	if picture, err = DecodeImage(list[n].Data); err != nil {
		return "", nil, server.ErrNotFound
	}
	return kind, picture, nil
}

// ImageType returns the media type of an image that browsers show without harm; "" for any other. It is found out from
// the bytes: what the record says is only a claim. SVG, which can hold scripts, is none of them.
func ImageType(x transcript.Block) string {
	if x.Kind != transcript.ImageBlock || len(x.Data) > maxImage {
		return ""
	}
	head, err := DecodeImage(x.Data[:min(len(x.Data), 1024)&^3])
	if err != nil {
		return ""
	}
	return ImageKind(head)
}

// ImageKind returns the media type of bytes that begin an image which browsers show without harm; "" for anything else.
func ImageKind(head []byte) string {
	switch kind := http.DetectContentType(head); kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return kind
	}
	return ""
}

// DecodeImage reads base64 as it stands in a JSON string, where a slash may be escaped.
func DecodeImage(data []byte) ([]byte, error) {
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

// svgSource returns an SVG image's text.
func svgSource(x transcript.Block) (string, bool) {
	if !strings.Contains(strings.ToLower(x.MediaType), "svg") || len(x.Data) > maxImage {
		return "", false
	}
	b, err := DecodeImage(x.Data)
	if err != nil {
		return "", false
	}
	return string(b), true
}
