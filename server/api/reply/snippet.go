package reply

import "strings"

// Piece is a piece of a snippet, in order.
type Piece struct {
	Text  string `json:"text"`
	Match bool   `json:"match"`
}

// Pieces cuts a snippet at its marks.
func Pieces(s string) []Piece {
	out := []Piece{}
	for match := false; s != ""; match = !match {
		mark := "\x02"
		if match {
			mark = "\x03"
		}
		text, rest, _ := strings.Cut(s, mark)
		if text != "" {
			out = append(out, Piece{text, match})
		}
		s = rest
	}
	return out
}
