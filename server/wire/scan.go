package wire

import "bytes"

// scan cuts JSON into values by counting brackets. It finds where a value ends, much faster than a decoder, and
// checks nothing else: the caller validates the values.
type scan struct {
	b []byte
	i int
}

// space skips white space and answers the byte after it, 0 at the end.
func (s *scan) space() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return c
		}
	}
	return 0
}

// take skips white space and c; false when something else is there.
func (s *scan) take(c byte) bool {
	if s.space() != c {
		return false
	}
	s.i++
	return true
}

// value cuts out the value that starts here, nil when none ends.
func (s *scan) value() []byte {
	c := s.space()
	start := s.i
	switch c {
	case 0:
		return nil
	case '"':
		if !s.str() {
			return nil
		}
	case '{', '[':
		if !s.brackets() {
			return nil
		}
	default:
		n := bytes.IndexAny(s.b[s.i:], ",]}")
		if n <= 0 {
			return nil
		}
		s.i += n
		return bytes.TrimRight(s.b[start:s.i], " \t\r\n")
	}
	return s.b[start:s.i]
}

// str skips a string; s.i is at its opening quote.
func (s *scan) str() bool {
	i := s.i + 1
	for {
		n := bytes.IndexByte(s.b[i:], '"')
		if n < 0 {
			return false
		}
		i += n + 1
		// The quote ends the string unless an odd number of backslashes stands before it.
		k := i - 2
		for k > s.i && s.b[k] == '\\' {
			k--
		}
		if (i-2-k)%2 == 0 {
			s.i = i
			return true
		}
	}
}

// brackets skips an object or array; s.i is at its opening bracket.
func (s *scan) brackets() bool {
	depth := 0
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case '"':
			if !s.str() {
				return false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				s.i++
				return true
			}
		}
		s.i++
	}
	return false
}
