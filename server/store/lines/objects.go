package lines

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

var (
	// errNoObject is for an object that is not there.
	errNoObject = errors.New("the object is missing")
	// ErrBadBlocks is for URLs that name no location for objects; its text says what would.
	ErrBadBlocks = errors.New("bad place for blocks")
)

// objectStore is a location for immutable objects, in S3-compatible storage or in a folder. A name is written once.
// Safe for concurrent use. Every error but errNoObject may be over soon.
type objectStore interface {
	// Put returns once an object is durable. Another Put of the name with the same bytes changes nothing.
	Put(ctx context.Context, name string, data []byte) error
	// Get returns the bytes of an object of up to most bytes. A longer one is cut: its hash is wrong then.
	Get(ctx context.Context, name string, most int64) ([]byte, error)
	// Delete removes an object. One that is not there is removed.
	Delete(ctx context.Context, name string) error
}

// openObjects returns the location that a URL names, s3://bucket/prefix or file:///folder. It connects to nothing.
func openObjects(place string) (objectStore, error) {
	u, err := parseBlocks(place)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "file" {
		return openFolder(u)
	}
	return openBucket(u)
}

// CheckBlocks returns the ErrBadBlocks that openObjects would return.
func CheckBlocks(place string) error {
	_, err := openObjects(place)
	return err
}

func parseBlocks(place string) (*url.URL, error) {
	u, err := url.Parse(place)
	switch {
	case err != nil, u.Scheme != "s3" && u.Scheme != "file", u.Fragment != "", u.Opaque != "":
		// The error leaves place out: it may hold a key.
		return nil, fmt.Errorf("%w: want s3://bucket/prefix?endpoint=https://host, or file:///folder", ErrBadBlocks)
	case u.User != nil:
		return nil, fmt.Errorf("%w: the address has a key in it; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead",
			ErrBadBlocks)
	case u.Scheme == "file" && (u.Host != "" || u.RawQuery != "" || strings.Trim(u.Path, "/") == ""):
		return nil, fmt.Errorf("%w %q: want file:///folder, an absolute path", ErrBadBlocks, place)
	}
	return u, nil
}
