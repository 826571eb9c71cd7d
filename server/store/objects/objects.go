package objects

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

var (
	// ErrMissing is for an object that is not there.
	ErrMissing = errors.New("the object is missing")
	// ErrBadURL is for URLs that name no location for objects; its text says what would.
	ErrBadURL = errors.New("bad place for blocks")
)

// Store is a location for objects. Safe for concurrent use. Every error but ErrMissing may be over soon.
type Store interface {
	// Put returns once an object is durable. Another Put of the name with the same bytes changes nothing.
	Put(ctx context.Context, name string, data []byte) error
	// Get returns the bytes of an object of up to most bytes. A longer one is cut: its hash is wrong then.
	Get(ctx context.Context, name string, most int64) ([]byte, error)
	// Delete removes an object. One that is not there is removed.
	Delete(ctx context.Context, name string) error
}

// Open returns the location that a URL names, s3://bucket/prefix or file:///folder. It connects to nothing.
func Open(place string) (Store, error) {
	u, err := parse(place)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "file" {
		return openFolder(u)
	}
	return openBucket(u)
}

// Check returns the ErrBadURL that Open would return.
func Check(place string) error {
	_, err := Open(place)
	return err
}

func parse(place string) (*url.URL, error) {
	u, err := url.Parse(place)
	switch {
	case err != nil, u.Scheme != "s3" && u.Scheme != "file", u.Fragment != "", u.Opaque != "":
		// The error leaves place out: it may hold a key.
		return nil, fmt.Errorf("%w: want s3://bucket/prefix?endpoint=https://host, or file:///folder", ErrBadURL)
	case u.User != nil:
		return nil, fmt.Errorf("%w: the address has a key in it; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead",
			ErrBadURL)
	case u.Scheme == "file" && (u.Host != "" || u.RawQuery != "" || strings.Trim(u.Path, "/") == ""):
		return nil, fmt.Errorf("%w %q: want file:///folder, an absolute path", ErrBadURL, place)
	}
	return u, nil
}
