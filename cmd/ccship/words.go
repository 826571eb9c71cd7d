package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

// listed are words separated by commas, all of which must be known.
func listed(flag, text string, known []string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	var out []string
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if err := oneOf(flag, word, known); err != nil {
			return nil, err
		}
		out = append(out, word)
	}
	return out, nil
}

// oneOf refuses a word that a flag does not know, with the nearest that it knows.
func oneOf(flag, word string, known []string) error {
	if slices.Contains(known, word) {
		return nil
	}
	hint := "it knows " + strings.Join(known, ", ")
	if near := amount.Nearest(word, known); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return control.Usage(fmt.Sprintf("%s has no %q", flag, word), hint)
}
