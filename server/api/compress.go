package api

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
)

// types returns what is compressed: text. Images and files are compressed already or of unknown content, and events
// must reach their reader at once.
func types() []string {
	return []string{
		"text/html", "text/css", "text/javascript", "text/plain", "text/markdown", "image/svg+xml",
		"application/json", "application/x-ndjson", "application/yaml", "application/manifest+json",
	}
}

const (
	least = 1024 // bytes; a shorter answer fits a packet anyway
	level = 3    // of gzip: a page of 500 KB takes 5 ms; higher levels gain a few per cent
	// zstdLevel is the second of four, with a window of 128 KiB: as small as gzip's answers in less time.
	zstdLevel = 2
	// A page that holds both a secret and what a request said would tell the secret by its length. Every length varies by
	// so many bytes.
	jitter = 64
)

// compressAnswers returns h with compressed answers.
func compressAnswers(h http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.ContentTypes(types()), gzhttp.MinSize(least), gzhttp.CompressionLevel(level),
		gzhttp.ZstdCompressionLevel(zstdLevel), gzhttp.RandomJitter(jitter, 0, false))
	if err != nil {
		return h // the options are constants: a test sees it
	}
	return wrap(h)
}
