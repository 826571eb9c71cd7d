package project

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ccship/ccship/internal/sys"
)

// Bounds of reading a repository's objects: nothing in it is trusted.
const (
	maxCommits    = 200_000
	maxCommitSize = 1 << 20
	maxDeltas     = 256
	maxAlternates = 8
	maxPacks      = 4096
)

var errObject = errors.New("not a usable git object")

// FirstCommit follows the first parents of a repository's branch main, master or else HEAD, and returns the id of the
// commit where they end. gitDir is the folder that all its work trees share. An error, as of a shallow clone, means
// that nothing is known of it. It reads each of these commits, which may take seconds.
func FirstCommit(ctx context.Context, gitDir string) (string, error) {
	if text, err := readFile(filepath.Join(gitDir, "shallow"), maxFile); err == nil && len(bytes.TrimSpace(text)) > 0 {
		return "", fmt.Errorf("%s is a shallow clone", gitDir)
	} else if err != nil && !absent(err) {
		return "", err
	}
	id := ""
	for _, ref := range []string{"refs/heads/main", "refs/heads/master", "HEAD"} {
		if id = resolveRef(gitDir, ref); id != "" {
			break
		}
	}
	objects, err := openObjects(filepath.Join(gitDir, "objects"))
	if err != nil {
		return "", err
	}
	defer objects.close()
	for range maxCommits {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		commit, err := objects.commit(id)
		if err != nil {
			return "", fmt.Errorf("read commit %q: %w", id, err)
		}
		_, rest, ok := bytes.Cut(commit, []byte("\n")) // the first line names its tree
		if !ok || !bytes.HasPrefix(commit, []byte("tree ")) {
			return "", fmt.Errorf("read commit %q: %w", id, errObject)
		}
		parent, ok := bytes.CutPrefix(rest, []byte("parent "))
		if !ok {
			return id, nil
		}
		parent, _, _ = bytes.Cut(parent, []byte("\n"))
		id = string(parent)
	}
	return "", fmt.Errorf("%s has more than %d commits", gitDir, maxCommits)
}

// resolveRef returns the id that a reference names; "" when it is not known.
func resolveRef(gitDir, ref string) string {
	for range 8 {
		text, err := readFile(filepath.Join(gitDir, filepath.FromSlash(ref)), maxFile)
		if err != nil {
			return packedRef(gitDir, ref)
		}
		target, symbolic := bytes.CutPrefix(text, []byte("ref:"))
		if !symbolic {
			return string(bytes.TrimSpace(text))
		}
		ref = string(bytes.TrimSpace(target))
		if !strings.HasPrefix(ref, "refs/") || !filepath.IsLocal(filepath.FromSlash(ref)) {
			return ""
		}
	}
	return ""
}

func packedRef(gitDir, ref string) string {
	text, _ := readFile(filepath.Join(gitDir, "packed-refs"), maxSnapshot)
	for line := range bytes.Lines(text) {
		if id, name, ok := bytes.Cut(bytes.TrimSpace(line), []byte(" ")); ok && string(name) == ref {
			return string(id)
		}
	}
	return ""
}

// objects are the objects of a repository, those that it borrows included. Not safe for concurrent use.
type objects struct {
	dirs  []string
	packs []*pack
}

// openObjects opens a folder of objects. The caller closes them.
func openObjects(dir string) (*objects, error) {
	o := &objects{dirs: []string{dir}}
	for i := 0; i < len(o.dirs) && i < maxAlternates; i++ {
		text, err := readFile(filepath.Join(o.dirs[i], "info", "alternates"), maxFile)
		if err != nil && !absent(err) {
			return nil, err
		}
		for line := range bytes.Lines(text) {
			if other := bytes.TrimSpace(line); len(other) > 0 && other[0] != '#' {
				o.dirs = append(o.dirs, below(o.dirs[i], other))
			}
		}
		packs := filepath.Join(o.dirs[i], "pack")
		entries, err := os.ReadDir(packs)
		if err != nil && !absent(err) {
			return nil, err
		}
		for _, e := range entries {
			if name, is := strings.CutSuffix(e.Name(), ".idx"); is && strings.HasPrefix(name, "pack-") {
				o.packs = append(o.packs, &pack{path: filepath.Join(packs, name)})
			}
		}
		if len(o.packs) > maxPacks {
			return nil, fmt.Errorf("list packs of %s: %w", o.dirs[i], errObject)
		}
	}
	return o, nil
}

func (o *objects) close() {
	for _, p := range o.packs {
		p.close()
	}
}

// commit returns the text of a commit.
func (o *objects) commit(id string) ([]byte, error) {
	text, kind, err := o.read(id, 0)
	if err == nil && kind != packedCommit {
		err = errObject
	}
	return text, err
}

// read returns an object and its kind. depth is how many deltas were followed to it.
func (o *objects) read(id string, depth int) ([]byte, byte, error) {
	name, err := hex.DecodeString(id)
	if err != nil || len(name) != 20 {
		return nil, 0, errObject
	}
	for _, dir := range o.dirs {
		text, err := readLoose(filepath.Join(dir, id[:2], id[2:]))
		if err == nil || !absent(err) {
			return text, packedCommit, err
		}
	}
	for i, p := range o.packs {
		at, ok, err := p.find(name)
		if err != nil {
			return nil, 0, err
		}
		if ok {
			copy(o.packs[1:i+1], o.packs[:i]) // the next one is likely in the same pack
			o.packs[0] = p
			return p.read(o, at, depth)
		}
	}
	return nil, 0, os.ErrNotExist
}

// readLoose reads a commit from a file of its own.
func readLoose(path string) ([]byte, error) {
	packed, err := readFile(path, maxCommitSize)
	if err != nil {
		return nil, err
	}
	text, err := inflate(bytes.NewReader(packed), maxCommitSize)
	head, rest, ok := bytes.Cut(text, []byte{0})
	size, is := strings.CutPrefix(string(head), "commit ")
	if n, err2 := strconv.Atoi(size); err != nil || !ok || !is || err2 != nil || n != len(rest) {
		return nil, errObject
	}
	return rest, nil
}

func inflate(r io.Reader, most int64) ([]byte, error) {
	z, err := zlib.NewReader(r)
	if err != nil {
		return nil, errors.Join(errObject, err)
	}
	text, err := io.ReadAll(io.LimitReader(z, most+1))
	if err != nil || int64(len(text)) > most {
		return nil, errors.Join(errObject, err)
	}
	return text, nil
}

// Kinds of objects in packs.
const (
	packedCommit    = 1
	packedOffset    = 6 // a delta to an object so far before it
	packedReference = 7 // a delta to a named object
)

// pack is a pack and its index, opened when first asked.
type pack struct {
	path        string // without .idx and .pack
	index, data *os.File
	fanout      [256]uint32
}

func (p *pack) close() {
	for _, f := range []*os.File{p.index, p.data} {
		if f != nil {
			f.Close()
		}
	}
}

func (p *pack) open() (err error) {
	for _, x := range []struct {
		at  **os.File
		ext string
	}{{&p.index, ".idx"}, {&p.data, ".pack"}} {
		*x.at, err = sys.OpenRegular(p.path + x.ext)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, sys.ErrNotFile) {
			err = errors.Join(errObject, err)
		}
		if err != nil {
			return err
		}
	}
	var head [8 + 4*256]byte
	if _, err := p.index.ReadAt(head[:], 0); err != nil || string(head[:8]) != "\xfftOc\x00\x00\x00\x02" {
		return errors.Join(errObject, err)
	}
	for i := range p.fanout {
		p.fanout[i] = binary.BigEndian.Uint32(head[8+4*i:])
	}
	if !slices.IsSorted(p.fanout[:]) {
		return errObject
	}
	return nil
}

// find returns where an object begins in the pack. See gitformat-pack(5).
func (p *pack) find(name []byte) (at int64, ok bool, err error) {
	if p.data == nil {
		if err := p.open(); err != nil {
			return 0, false, err
		}
	}
	first, last := int64(0), int64(p.fanout[name[0]])
	if name[0] > 0 {
		first = int64(p.fanout[name[0]-1])
	}
	const names = 8 + 4*256
	all := int64(p.fanout[255])
	var b [20]byte
	for first < last {
		i := (first + last) / 2
		if _, err := p.index.ReadAt(b[:], names+20*i); err != nil {
			return 0, false, err
		}
		switch c := bytes.Compare(b[:], name); {
		case c < 0:
			first = i + 1
		case c > 0:
			last = i
		default:
			if _, err := p.index.ReadAt(b[:4], names+24*all+4*i); err != nil {
				return 0, false, err
			}
			short := binary.BigEndian.Uint32(b[:])
			if short>>31 == 0 {
				return int64(short), true, nil
			}
			_, err := p.index.ReadAt(b[:8], names+28*all+8*int64(short&(1<<31-1)))
			return int64(binary.BigEndian.Uint64(b[:]) &^ (1 << 63)), true, err
		}
	}
	return 0, false, nil
}

// read returns the object at an offset, and its kind.
func (p *pack) read(o *objects, at int64, depth int) ([]byte, byte, error) {
	var head [64]byte
	n, err := p.data.ReadAt(head[:], at)
	if n == 0 || depth > maxDeltas {
		return nil, 0, errors.Join(errObject, err)
	}
	kind, i := head[0]>>4&7, 1
	for ; i < n && head[i-1]&0x80 != 0; i++ { // its size, which the packed bytes say too
	}
	if i >= n {
		return nil, 0, errObject
	}
	var base []byte
	switch kind {
	case packedOffset:
		back := int64(head[i] & 0x7f)
		for i++; i < n && head[i-1]&0x80 != 0; i++ {
			back = (back+1)<<7 | int64(head[i]&0x7f)
		}
		if back <= 0 || back > at {
			return nil, 0, errObject
		}
		base, kind, err = p.read(o, at-back, depth+1)
	case packedReference:
		if i+20 > n {
			return nil, 0, errObject
		}
		base, kind, err = o.read(hex.EncodeToString(head[i:i+20]), depth+1)
		i += 20
	default:
		text, err := inflate(io.NewSectionReader(p.data, at+int64(i), 1<<62-at), maxCommitSize)
		return text, kind, err
	}
	if err != nil {
		return nil, 0, err
	}
	delta, err := inflate(io.NewSectionReader(p.data, at+int64(i), 1<<62-at), maxCommitSize)
	if err != nil {
		return nil, 0, err
	}
	text, err := applyDelta(base, delta)
	return text, kind, err
}

// applyDelta makes an object of another one.
func applyDelta(base, delta []byte) ([]byte, error) {
	from, n := binary.Uvarint(delta)
	size, m := binary.Uvarint(delta[max(n, 0):])
	if n <= 0 || m <= 0 || from != uint64(len(base)) || size > maxCommitSize {
		return nil, errObject
	}
	out, delta := make([]byte, 0, size), delta[n+m:]
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		if op&0x80 == 0 { // that many bytes follow
			if op == 0 || int(op) > len(delta) {
				return nil, errObject
			}
			out, delta = append(out, delta[:op]...), delta[op:]
			continue
		}
		var number [8]byte // an offset of four bytes, and a length of three, of which those are written that are not 0
		for bit := range 7 {
			if op&(1<<bit) != 0 {
				if len(delta) == 0 {
					return nil, errObject
				}
				number[bit], delta = delta[0], delta[1:]
			}
		}
		offset, length := uint64(binary.LittleEndian.Uint32(number[:])), uint64(binary.LittleEndian.Uint32(number[4:]))
		if length == 0 {
			length = 1 << 16
		}
		if offset+length > uint64(len(base)) {
			return nil, errObject
		}
		out = append(out, base[offset:offset+length]...)
	}
	if uint64(len(out)) != size {
		return nil, errObject
	}
	return out, nil
}
