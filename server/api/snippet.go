package api

import "strings"

// pieceAnswer is a piece of a snippet, in order.
type pieceAnswer struct {
	Text  string `json:"text"`
	Match bool   `json:"match"`
}

// piecesAnswer cuts a snippet at its marks.
func piecesAnswer(s string) []pieceAnswer {
	out := []pieceAnswer{}
	for match := false; s != ""; match = !match {
		mark := "\x02"
		if match {
			mark = "\x03"
		}
		text, rest, _ := strings.Cut(s, mark)
		if text != "" {
			out = append(out, pieceAnswer{text, match})
		}
		s = rest
	}
	return out
}
