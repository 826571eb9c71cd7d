package lines

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/server/store/sqlstore"
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

const (
	// patience is how long one request to the storage may take.
	patience = time.Minute
	// tries is how often a request is sent.
	tries = 3
)

// objectBucket keeps objects in S3-compatible storage.
type objectBucket struct {
	client       *minio.Client
	name, prefix string
}

func openBucket(u *url.URL) (objectStore, error) {
	bad := func(why string) error {
		return fmt.Errorf("%w: %s; want s3://bucket/prefix?endpoint=https://host", ErrBadBlocks, why) // u may hold a key
	}
	query := u.Query()
	for key := range query {
		if key != "endpoint" && key != "region" && key != "lookup" {
			return nil, bad("the options are endpoint, region and lookup")
		}
	}
	endpoint := &url.URL{Scheme: "https", Host: "s3.amazonaws.com"}
	if text := query.Get("endpoint"); text != "" {
		var err error
		endpoint, err = url.Parse(text)
		if err != nil || endpoint.Scheme != "https" && endpoint.Scheme != "http" || endpoint.Host == "" ||
			strings.Trim(endpoint.Path, "/") != "" || endpoint.User != nil {
			return nil, bad("the endpoint is no address")
		}
	}
	lookup, ok := map[string]minio.BucketLookupType{"": minio.BucketLookupAuto, "path": minio.BucketLookupPath,
		"host": minio.BucketLookupDNS}[query.Get("lookup")]
	if !ok {
		return nil, bad("lookup is path or host")
	}
	if u.Host == "" {
		return nil, bad("the bucket is missing")
	}
	transport, err := minio.DefaultTransport(endpoint.Scheme == "https")
	if err != nil {
		return nil, fmt.Errorf("prepare connections to %s: %w", endpoint.Host, err)
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{},
			&credentials.IAM{Client: &http.Client{Timeout: patience / 6}},
		}),
		Secure: endpoint.Scheme == "https", Transport: transport, Region: query.Get("region"), BucketLookup: lookup,
		MaxRetries: tries,
	})
	if err != nil {
		return nil, bad(err.Error())
	}
	return &objectBucket{client, u.Host, strings.Trim(u.Path, "/")}, nil
}

func (b *objectBucket) key(name string) string { return path.Join(b.prefix, name) }

// Put implements Store. An object is sent in one request, so that nothing remains of one that is interrupted.
func (b *objectBucket) Put(ctx context.Context, name string, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := b.client.PutObject(ctx, b.name, b.key(name), bytes.NewReader(data), int64(len(data)),
		minio.PutObjectOptions{DisableMultipart: true, ContentType: "application/octet-stream"})
	if err != nil {
		return b.explain("write", err)
	}
	return nil
}

// Get implements Store.
func (b *objectBucket) Get(ctx context.Context, name string, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	o, err := b.client.GetObject(ctx, b.name, b.key(name), minio.GetObjectOptions{})
	if err != nil {
		return nil, b.explain("read", err)
	}
	data, err := io.ReadAll(io.LimitReader(o, most))
	if err := errors.Join(err, o.Close()); err != nil {
		return nil, b.explain("read", err)
	}
	return data, nil
}

// Delete implements Store.
func (b *objectBucket) Delete(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := b.client.RemoveObject(ctx, b.name, b.key(name), minio.RemoveObjectOptions{})
	if err = b.explain("remove", err); err != nil && !errors.Is(err, errNoObject) {
		return err
	}
	return nil
}

func (b *objectBucket) explain(verb string, err error) error {
	if err == nil {
		return nil
	}
	said, _ := errors.AsType[minio.ErrorResponse](err)
	if said.Code == minio.NoSuchKey {
		return fmt.Errorf("%s object: %w", verb, errNoObject)
	}
	return fmt.Errorf("%s object in bucket %s: %w", verb, b.name, err)
}

// objectFolder keeps each object in a file of its name.
type objectFolder struct{ root string }

func openFolder(u *url.URL) (objectStore, error) {
	path := u.Path
	if runtime.GOOS == "windows" {
		path = strings.TrimPrefix(path, "/") // before a drive's letter
	}
	return objectFolder{filepath.Clean(filepath.FromSlash(path))}, nil
}

func (f objectFolder) path(name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", fmt.Errorf("bad name of an object %q", name)
	}
	return filepath.Join(f.root, filepath.FromSlash(name)), nil
}

// Put implements Store. The file gets its name once its bytes are on disk.
func (f objectFolder) Put(_ context.Context, name string, data []byte) error {
	path, err := f.path(name)
	if err == nil {
		err = f.put(path, data)
	}
	return sqlstore.Wrap(err, "write object")
}

func (f objectFolder) put(path string, data []byte) error {
	var above []string // folders in which one is made
	for at := filepath.Dir(path); ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			break
		}
		above = append(above, filepath.Dir(at))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := sys.CreateFile(path)
	if err != nil {
		return err
	}
	defer file.Discard()
	if _, err := file.Write(data); err != nil {
		return err
	}
	err = file.Commit()
	for _, dir := range above {
		err = cmp.Or(err, sys.SyncFolder(dir))
	}
	return err
}

// Get implements Store.
func (f objectFolder) Get(_ context.Context, name string, most int64) ([]byte, error) {
	path, err := f.path(name)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read object: %w", errNoObject)
	}
	if err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(file, most))
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	return data, nil
}

// Delete implements Store. Folders that are empty then go too.
func (f objectFolder) Delete(_ context.Context, name string) error {
	path, err := f.path(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove object: %w", err)
	}
	dir := filepath.Dir(path)
	if err := sys.SyncFolder(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("remove object: %w", err)
	}
	for up := dir; up != f.root && strings.HasPrefix(up, f.root) && os.Remove(up) == nil; {
		up = filepath.Dir(up)
	}
	return nil
}
