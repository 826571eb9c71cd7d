package lines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

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
