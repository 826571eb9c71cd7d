package kv

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"strings"

	"github.com/ccship/ccship/internal/sys"
)

// bbolt walks all pages of a file when it opens the file, through the memory map and in its own goroutine: a damaged
// page ends the process, and no caller can prevent that. So the pages are first walked here with plain reads, and bbolt
// only gets a file whose structure is intact. Checksums protect the values (codec.go).
//
// The walk holds one page for each level of the tree, however large the file is. It checks that each page carries its
// own number and is used once, that every element lies inside its page, that the keys of a page ascend and lie between
// those of the branch above, and that the tree ends. It does not look for unreferenced pages: without a free list on
// disk bbolt finds the free pages by the same walk.

// The layout of bbolt's pages, version 2 of its format. Numbers are in the byte order of the machine: a file that was
// carried to another order has no valid root, and is set aside.
//
//	page 0, 1   the two roots (meta pages), written in turn: the one with the higher transaction that is whole counts
//	page 2..    header, then the table of elements, then keys and values; a large page goes on in those behind it
const (
	pageHeader  = 16 // id u64, flags u16, count u16, overflow u32
	element     = 16 // branch: pos u32, ksize u32, page u64; leaf: flags u32, pos u32, ksize u32, vsize u32
	metaSize    = 64
	bucketSize  = 16 // root page u64, sequence u64; root 0: the page follows inside the value
	flagBranch  = 0x01
	flagLeaf    = 0x02
	flagBucket  = 0x01 // of a leaf element
	boltMagic   = 0xED0CDAED
	boltVersion = 2
	noFreelist  = ^uint64(0)
	maxDepth    = 64
)

// checker walks one file.
type checker struct {
	f        io.ReaderAt
	pageSize int64
	pages    uint64   // below this number a page may be used
	seen     []uint64 // bit set of the pages that were walked: a page referenced twice would be freed under one of them
	bufs     [][]byte // one page by depth: the keys of a page are needed until all below it is checked

	bucket []byte // the name of the one being walked; nil: that of all buckets
	sum    uint64 // of the rows so far
	stored []byte // the row that holds the sum; nil: not found yet
}

// metaPage is a root of the file: the page that the tree of buckets begins with, as one transaction left it.
type metaPage struct{ pageSize, root, freelist, pages, txid uint64 }

// checkFile reads the structure of a bbolt file; ErrCorrupt means that it is damaged.
func checkFile(path string) error {
	f, err := sys.OpenOwn(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = checkPages(f, f.Stat)
	return err
}

// checkPages is checkFile for an open file; stat returns its size. It returns the transaction that it checked, so that
// a caller can distinguish damage from a file that a daemon wrote to meanwhile.
func checkPages(f io.ReaderAt, stat func() (os.FileInfo, error)) (txid uint64, err error) {
	m, err := newestMeta(f)
	if err != nil {
		return 0, err
	}
	info, err := stat() // after the root: a file in use grows before its root says so
	if err != nil {
		return 0, err
	}
	c := &checker{f: f, pageSize: int64(m.pageSize), pages: m.pages}
	if info.Size() < 2*c.pageSize || uint64(info.Size()/c.pageSize) < m.pages {
		return m.txid, fmt.Errorf("%w: %d pages of %d bytes do not fit its %d bytes",
			ErrCorrupt, m.pages, m.pageSize, info.Size())
	}
	if m.freelist != noFreelist { // a free list on disk would have pages that this walk does not see
		return m.txid, fmt.Errorf("%w: it was not written by ccship", ErrCorrupt)
	}
	c.seen = make([]uint64, m.pages/64+1)
	c.seen[0] = 3 // the metas
	if err := c.walk(m.root, nil, nil, 0); err != nil {
		return m.txid, err
	}
	return m.txid, c.compareSum()
}

// compareSum finds rows that are missing, or that an earlier transaction wrote.
func (c *checker) compareSum() error {
	if c.stored == nil {
		return nil
	}
	want, err := readSum(c.stored)
	if err != nil {
		return err
	}
	if want != c.sum {
		return fmt.Errorf("%w: its rows are not those that were written", ErrCorrupt)
	}
	return nil
}

// newestMeta returns the root that bbolt will use: the valid one with the highest transaction. One valid root is
// enough: a power cut during the write of the other one leaves the file as the previous transaction left it.
func newestMeta(f io.ReaderAt) (newest metaPage, err error) {
	found := false
	// The second one lies a page further; its size is in either.
	for _, at := range append([]int64{0}, pageSizes()...) {
		var b [pageHeader + metaSize]byte
		if _, err := f.ReadAt(b[:], at); err != nil {
			if errors.Is(err, io.EOF) {
				break
			}
			return metaPage{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		m, ok := parseMeta(b[pageHeader:])
		if !ok || at != 0 && at != int64(m.pageSize) {
			continue
		}
		if !found || m.txid > newest.txid {
			newest, found = m, true
		}
	}
	if !found {
		return metaPage{}, fmt.Errorf("%w: no root is whole", ErrCorrupt)
	}
	return newest, nil
}

// pageSizes returns the possible page sizes: bbolt uses that of the system that made the file.
func pageSizes() (sizes []int64) {
	for s := int64(1 << 10); s <= 64<<10; s *= 2 {
		sizes = append(sizes, s)
	}
	return sizes
}

// parseMeta reads a root, which has its own checksum. ok: it is intact, and its numbers are plausible.
func parseMeta(b []byte) (m metaPage, ok bool) {
	n := binary.NativeEndian
	h := fnv.New64a()
	h.Write(b[:metaSize-8])
	if n.Uint32(b) != boltMagic || n.Uint32(b[4:]) != boltVersion || n.Uint64(b[metaSize-8:]) != h.Sum64() {
		return m, false
	}
	m = metaPage{
		pageSize: uint64(n.Uint32(b[8:])), root: n.Uint64(b[16:]), freelist: n.Uint64(b[32:]), pages: n.Uint64(b[40:]),
		txid: n.Uint64(b[48:]),
	}
	return m, m.pageSize >= 1<<10 && m.pageSize <= 64<<10 && m.pageSize&(m.pageSize-1) == 0 && m.pages < 1<<40
}

// walk checks a page and all pages below it. Their keys lie in [low, high); nil means no bound.
func (c *checker) walk(id uint64, low, high []byte, depth int) error {
	if depth > maxDepth {
		return c.bad(id, "the tree is too deep")
	}
	if id < 2 || id >= c.pages {
		return c.bad(id, "it lies outside the file")
	}
	for len(c.bufs) <= depth {
		c.bufs = append(c.bufs, make([]byte, c.pageSize))
	}
	page, at := c.bufs[depth], int64(id)*c.pageSize
	if _, err := c.f.ReadAt(page, at); err != nil {
		return fmt.Errorf("%w: read page %d: %w", ErrCorrupt, id, err)
	}
	n := binary.NativeEndian
	if n.Uint64(page) != id {
		return c.bad(id, "it has another number")
	}
	overflow := uint64(n.Uint32(page[12:]))
	if overflow >= c.pages-id {
		return c.bad(id, "it ends outside the file")
	}
	for i := id; i <= id+overflow; i++ {
		if c.seen[i/64]&(1<<(i%64)) != 0 {
			return c.bad(i, "it is used twice")
		}
		c.seen[i/64] |= 1 << (i % 64)
	}
	p := node{id: id, at: at, size: int64(overflow+1) * c.pageSize, front: page, depth: depth}
	return c.walkNode(p, low, high)
}

// node is a page of the tree, or a bucket's page inside a value: bbolt keeps a small bucket in the page of its parent.
type node struct {
	id    uint64
	at    int64 // in the file
	size  int64
	front []byte // its first bytes
	depth int
}

func (p *node) flags() uint16 { return binary.NativeEndian.Uint16(p.front[8:]) }
func (p *node) count() int    { return int(binary.NativeEndian.Uint16(p.front[10:])) }

// walkNode checks the elements of a page, and goes on into the pages and buckets below it.
func (c *checker) walkNode(p node, low, high []byte) error {
	if f := p.flags(); f != flagBranch && f != flagLeaf {
		return c.bad(p.id, "its kind is unknown")
	}
	if pageHeader+int64(p.count())*element > p.size {
		return c.bad(p.id, "it has too many elements")
	}
	if p.flags() == flagBranch && p.count() == 0 {
		return c.bad(p.id, "it branches to nothing")
	}
	table, err := c.read(p, pageHeader, int64(p.count())*element)
	if err != nil {
		return err
	}
	keys, heads, err := c.keys(p, table)
	if err != nil {
		return err
	}
	for i, k := range keys {
		unsorted := i > 0 && bytes.Compare(keys[i-1], k) >= 0
		if unsorted || low != nil && bytes.Compare(k, low) < 0 || high != nil && bytes.Compare(k, high) >= 0 {
			return c.bad(p.id, "its keys are out of order")
		}
		e := table[i*element:]
		if p.flags() == flagLeaf {
			if err := c.walkRow(p, e, row{k, heads[i], int64(i) * element}); err != nil {
				return err
			}
			continue
		}
		end := high
		if i+1 < len(keys) {
			end = keys[i+1]
		}
		if err := c.walk(binary.NativeEndian.Uint64(e[8:]), k, end, p.depth+1); err != nil {
			return err
		}
	}
	return nil
}

// keys reads the keys of all elements and the beginning of their values, and checks that keys and values lie inside the
// page. The rest of a value is not read: it may be gigabytes, and has a checksum.
func (c *checker) keys(p node, table []byte) (keys, heads [][]byte, err error) {
	keys, heads = make([][]byte, p.count()), make([][]byte, p.count())
	for i := range keys {
		pos, ksize, vsize := elementSizes(p.flags(), table[i*element:])
		start := pageHeader + int64(i)*element + pos
		if start < pageHeader+int64(len(table)) || start+ksize+vsize > p.size || ksize > 1<<10 {
			return nil, nil, c.bad(p.id, "an element lies outside it")
		}
		both, err := c.read(p, start, ksize+min(vsize, sumHead))
		if err != nil {
			return nil, nil, err
		}
		keys[i], heads[i] = both[:ksize], both[ksize:]
	}
	return keys, heads, nil
}

// elementSizes returns the offset of an element's key, counted from the element, and the lengths of key and value.
func elementSizes(flags uint16, e []byte) (pos, ksize, vsize int64) {
	n := binary.NativeEndian
	if flags == flagBranch {
		return int64(n.Uint32(e)), int64(n.Uint32(e[4:])), 0
	}
	return int64(n.Uint32(e[4:])), int64(n.Uint32(e[8:])), int64(n.Uint32(e[12:]))
}

// row is an element of a leaf that begins at a position in its table.
type row struct {
	key, head []byte
	place     int64
}

// walkRow adds a row to the sum, or goes on into it if it is a bucket.
func (c *checker) walkRow(p node, e []byte, r row) error {
	n := binary.NativeEndian
	switch flags := n.Uint32(e); {
	case flags == flagBucket:
		outer := c.bucket
		c.bucket = r.key
		defer func() { c.bucket = outer }()
		return c.walkBucket(p, e, r)
	case flags != 0:
		return c.bad(p.id, "the kind of an element is unknown")
	case isSum(c.bucket, r.key):
		c.stored = bytes.Clone(r.head)
	default:
		c.sum += rowSum(r.key, r.head, int(n.Uint32(e[12:])))
	}
	return nil
}

// walkBucket goes on into an element that is a bucket.
func (c *checker) walkBucket(p node, e []byte, r row) error {
	n := binary.NativeEndian
	pos, ksize, vsize := elementSizes(flagLeaf, e)
	value, err := c.read(p, pageHeader+r.place+pos+ksize, vsize)
	if err != nil {
		return err
	}
	if vsize < bucketSize {
		return c.bad(p.id, "a bucket is too small")
	}
	c.sum += sequenceSum(r.key, n.Uint64(value[8:]))
	if root := n.Uint64(value); root != 0 {
		return c.walk(root, nil, nil, p.depth+1)
	}
	if vsize < bucketSize+pageHeader {
		return c.bad(p.id, "a bucket is too small")
	}
	inner := node{id: p.id, size: vsize - bucketSize, front: value[bucketSize:], depth: p.depth + 1}
	if inner.flags() != flagLeaf || inner.depth > maxDepth {
		return c.bad(p.id, "a bucket inside it is not a leaf")
	}
	return c.walkNode(inner, nil, nil)
}

// read returns bytes of a page: those in front from memory, others as a copy. Only the first page of a large one is in
// memory.
func (c *checker) read(p node, at, size int64) ([]byte, error) {
	if at+size <= int64(len(p.front)) {
		return p.front[at : at+size], nil
	}
	b := make([]byte, size)
	if _, err := c.f.ReadAt(b, p.at+at); err != nil {
		return nil, fmt.Errorf("%w: read page %d: %w", ErrCorrupt, p.id, err)
	}
	return b, nil
}

// bad is the damage found at a page. The number helps to examine the file that was set aside.
func (c *checker) bad(page uint64, what string) error {
	return fmt.Errorf("%w: page %d: %s", ErrCorrupt, page, what)
}

// Check reads the structure of the file at path, also while a daemon uses it: it takes no lock.
// ErrCorrupt: the file is damaged, or its daemon has found damage. fs.ErrNotExist: there is no file. An error of ctx:
// the file is too large, or changes too fast, to be read in that time. Check does not check the values.
//
// A daemon that commits during the walk makes it fail: bbolt overwrites the pages of the old tree once no reader it
// knows of needs them, and it does not know this process. So a failure counts only if the root is still the same
// afterwards; otherwise the walk begins again at the new root.
func Check(ctx context.Context, path string) error {
	if words, err := os.ReadFile(path + suffixBroken); err == nil {
		return fmt.Errorf("%w: found while it was in use: %s", ErrCorrupt, strings.TrimSpace(string(words)))
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("check state: %w", err)
	}
	defer f.Close()
	reader := readUntil(ctx, f)
	for {
		txid, err := checkPages(reader, f.Stat)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("check state: %w", ctx.Err())
		}
		// A page is overwritten only after the next root is written: if the root is the same, it was damage.
		if m, metaErr := newestMeta(reader); !errors.Is(err, ErrCorrupt) || metaErr != nil || m.txid == txid {
			return fmt.Errorf("check state: %w", err)
		}
	}
}

// reading is an io.ReaderAt made from its only method.
type reading func(p []byte, off int64) (int, error)

func (r reading) ReadAt(p []byte, off int64) (int, error) { return r(p, off) }

// readUntil reads f until ctx is done, and then fails: the walk cannot be ended early anywhere else.
func readUntil(ctx context.Context, f io.ReaderAt) io.ReaderAt {
	return reading(func(p []byte, off int64) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return f.ReadAt(p, off)
	})
}
