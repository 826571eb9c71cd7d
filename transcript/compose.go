package transcript

import "golang.org/x/text/unicode/norm"

// Compose returns a text in Unicode's composed form (NFC), so that texts that look the same are the same: names of
// files on macOS come decomposed. A text that is composed is returned as it is.
func Compose(text string) string { return norm.NFC.String(text) }
