package provenance

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Commits are those of a question. Reading them from JSON takes no more memory than the largest question needs.
type Commits []Commit

// maxCommas is how many parts the JSON of a question has.
const maxCommas = 200_000

// UnmarshalJSON implements json.Unmarshaler.
func (c *Commits) UnmarshalJSON(text []byte) error {
	if bytes.Count(text, []byte(",")) > maxCommas {
		return errors.New("too many commits or lines: ask about fewer at once")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode((*[]Commit)(c))
}

// MaxLink is how long the text of a link is at most, in bytes: longer addresses are refused on their way.
const MaxLink = 6000

// maxLinked is how much a link holds, in bytes.
const maxLinked = 256 << 10

// Link writes a question about commits as text that fits into an address; ok is false when it is too long.
func Link(commits []Commit) (text string, ok bool, err error) {
	plain, err := json.Marshal(commits)
	if err != nil {
		return "", false, fmt.Errorf("write link: %w", err)
	}
	var b strings.Builder
	encoder := base64.NewEncoder(base64.RawURLEncoding, &b)
	packed, err := flate.NewWriter(encoder, flate.BestCompression)
	if err == nil {
		_, err = packed.Write(plain)
	}
	if err == nil {
		err = packed.Close()
	}
	if err == nil {
		err = encoder.Close()
	}
	if err != nil {
		return "", false, fmt.Errorf("write link: %w", err)
	}
	return b.String(), b.Len() <= MaxLink && len(plain) <= maxLinked, nil
}

var errLink = errors.New("not a link of `ccship why`")

// ParseLink reads what Link wrote.
func ParseLink(text string) (commits Commits, err error) {
	packed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, errLink
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxLinked))
	if err != nil || json.Unmarshal(plain, &commits) != nil {
		return nil, errLink
	}
	for _, c := range commits {
		for _, f := range c.Files {
			if len(f.Paths) == 0 {
				return nil, errLink
			}
		}
	}
	return commits, nil
}
