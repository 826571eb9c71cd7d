package transcript

import (
	"bytes"
	"cmp"
	"iter"
	"strconv"
	"strings"
	"time"
)

// Usage is the consumption of one request to the model, in tokens.
type Usage struct {
	Input, Output              int64 // Input does not include cache reads and writes
	CacheRead                  int64
	CacheWrite5m, CacheWrite1h int64 // they are priced differently; a write of unknown duration counts as 5m
	WebSearches, WebFetches    int64 // number of requests
}

// UsageSample is the usage reported by one assistant line. An answer has a line per block, so its usage is reported
// several times, at first with placeholders, and again in forks, resumes and replays. Count it once by Key, across all
// files.
type UsageSample struct {
	MessageID, RequestID, Model string
	UUID                        string // of the line
	Time                        time.Time
	Usage                       Usage
	Line                        int64
	Part                        int // 0: the answer itself; further requests that were made for it count from 1
	Sidechain                   bool
}

// Context returns the part of the model's window that the request filled: all input, without the answer.
func (u Usage) Context() int64 { return u.Input + u.CacheRead + u.CacheWrite5m + u.CacheWrite1h }

// Total returns all tokens, input and output.
func (u Usage) Total() int64 { return u.Context() + u.Output }

// Plus returns the sum.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Output: u.Output + v.Output, CacheRead: u.CacheRead + v.CacheRead,
		CacheWrite5m: u.CacheWrite5m + v.CacheWrite5m, CacheWrite1h: u.CacheWrite1h + v.CacheWrite1h,
		WebSearches: u.WebSearches + v.WebSearches, WebFetches: u.WebFetches + v.WebFetches,
	}
}

// Minus returns the difference, after v was counted before.
func (u Usage) Minus(v Usage) Usage {
	return u.Plus(Usage{
		Input: -v.Input, Output: -v.Output, CacheRead: -v.CacheRead,
		CacheWrite5m: -v.CacheWrite5m, CacheWrite1h: -v.CacheWrite1h,
		WebSearches: -v.WebSearches, WebFetches: -v.WebFetches,
	})
}

// Key identifies the answer: the message id (a replay has the same one, but another request id), otherwise the request
// id, otherwise the line's uuid; "" if it has none. Further requests of an answer have a number behind it.
func (u UsageSample) Key() string {
	key := cmp.Or(u.MessageID, u.RequestID, u.UUID)
	if u.Part > 0 && key != "" {
		key += "#" + strconv.Itoa(u.Part)
	}
	return key
}

// Supersedes reports which of two samples with the same Key counts, independent of their order: the main chain's before
// a sidechain's, then the one with more output, then the one with more tokens in total, then the earlier one. So an
// answer whose lines are alike belongs to the day of its first.
func (u UsageSample) Supersedes(v UsageSample) bool {
	switch {
	case u.Sidechain != v.Sidechain:
		return v.Sidechain
	case u.Usage.Output != v.Usage.Output:
		return u.Usage.Output > v.Usage.Output
	case u.Usage.Total() != v.Usage.Total():
		return u.Usage.Total() > v.Usage.Total()
	case !u.Time.Equal(v.Time):
		return u.Time.Before(v.Time)
	}
	return u.Line < v.Line
}

// Billing is what changes the price of a request beyond its model, and what else it was billed for.
type Billing struct {
	Speed, Tier, Geo string      // as the usage says; "" for what every request has
	Further          []Iteration // requests of its own that the usage does not include, such as those to an advisor
	Miscounted       bool        // a count is no number that a request can have: its price is not known
}

// Iteration is a request to a model that was made while another one was answered.
type Iteration struct {
	Model string // "": the answer's
	Usage Usage
	Billing
}

// name returns the model's name with what changes its price: "us/claude-opus-5-fast", as price lists write it. A place
// that is no known region goes behind it, where no price matches.
func (b *Billing) name(model string) string {
	if b == nil || model == "" {
		return model
	}
	for _, s := range []string{b.Speed, b.Tier} {
		if s != "" {
			model += "-" + s
		}
	}
	if b.Miscounted {
		model += "-miscounted"
	}
	switch {
	case b.Geo == "":
		return model
	case patterns().region.MatchString(b.Geo + "/"):
		return b.Geo + "/" + model
	}
	return model + "-" + b.Geo
}

// Answers yields what an assistant or progress record reports of answers: the usage of its own request, under the name
// that the price depends on, then that of further requests. Line is not set.
func (r *Record) Answers() iter.Seq[UsageSample] {
	return func(yield func(UsageSample) bool) {
		m := r.Message
		switch {
		case r.AgentAnswer != nil:
			yield(*r.AgentAnswer)
			return
		case r.Type != "assistant" || m == nil || m.Usage == nil || m.Synthetic() || r.APIError:
			return
		}
		sample := UsageSample{
			MessageID: m.ID, RequestID: r.RequestID, Model: m.Billing.name(m.Model), UUID: r.UUID, Time: r.Time,
			Usage: *m.Usage, Sidechain: r.Sidechain,
		}
		if !yield(sample) || m.Billing == nil {
			return
		}
		for _, further := range m.Billing.Further {
			sample.Part++
			sample.Usage = further.Usage
			if sample.Model = further.name(further.Model); further.Model == "" {
				sample.Model = m.Billing.name(m.Model)
			}
			if !yield(sample) {
				return
			}
		}
	}
}

// parseUsage reads a usage object. The billing is nil for an ordinary request.
func parseUsage(object []byte) (u Usage, extra *Billing) {
	var flat int64
	var b Billing
	w := walkerOf(object)
	for key, value, ok := w.member(); ok; key, value, ok = w.member() {
		switch string(key) {
		case "input_tokens":
			u.Input = b.tokens(value)
		case "output_tokens":
			u.Output = b.tokens(value)
		case "cache_read_input_tokens":
			u.CacheRead = b.tokens(value)
		case "cache_creation_input_tokens":
			flat = b.tokens(value)
		case "cache_creation":
			if bytes.HasPrefix(value, []byte("{")) {
				u.CacheWrite5m = b.tokens(field(value, "ephemeral_5m_input_tokens"))
				u.CacheWrite1h = b.tokens(field(value, "ephemeral_1h_input_tokens"))
			}
		case "server_tool_use":
			u.WebSearches = b.tokens(field(value, "web_search_requests"))
			u.WebFetches = b.tokens(field(value, "web_fetch_requests"))
		default:
			b.read(key, value)
		}
	}
	// The flat number was sometimes 0 before 2.1.152; older builds have only the flat number.
	u.CacheWrite5m += max(0, flat-u.CacheWrite5m-u.CacheWrite1h)
	if b.Speed != "" || b.Tier != "" || b.Geo != "" || b.Further != nil || b.Miscounted {
		extra = &b
	}
	return u, extra
}

// read takes a member of a usage object that changes prices.
func (b *Billing) read(key, value []byte) {
	switch string(key) {
	case "speed":
		b.Speed = cmp.Or(modifier(value), b.Speed)
	case "service_tier":
		b.Tier = cmp.Or(modifier(value), b.Tier)
	case "inference_geo":
		b.Geo = cmp.Or(modifier(value), b.Geo)
	case "iterations":
		b.iterations(value)
	}
}

// modifier returns a setting that changes prices; "" if it is the ordinary one, or no word.
func modifier(value []byte) string {
	switch s := strings.ToLower(text(value)); s {
	case "standard", "not_available", "global":
		return ""
	default:
		return s[:min(len(s), 32)]
	}
}

// maxIterations is how many further requests of one answer count.
const maxIterations = 64

// iterations reads usage.iterations. Steps of the answer itself are part of the usage around them, and say at times
// what that leaves out; what is no step of it counts as a request of its own.
func (b *Billing) iterations(value []byte) {
	if !bytes.HasPrefix(value, []byte("[")) {
		return
	}
	w := walkerOf(value)
	for w.skipComma(); w.i < len(w.b) && w.b[w.i] != ']' && len(b.Further) < maxIterations; w.skipComma() {
		element := w.value(w.i)
		if len(element) == 0 {
			break
		}
		usage, billing := parseUsage(element)
		it := Iteration{Model: text(field(element, "model")), Usage: usage}
		if billing != nil {
			it.Speed, it.Tier, it.Geo, it.Miscounted = billing.Speed, billing.Tier, billing.Geo, billing.Miscounted
		}
		if kind := text(field(element, "type")); kind == "message" || kind == "" {
			b.Speed, b.Tier, b.Geo = cmp.Or(b.Speed, it.Speed), cmp.Or(b.Tier, it.Tier), cmp.Or(b.Geo, it.Geo)
		} else if usage != (Usage{}) {
			b.Further = append(b.Further, it)
		}
	}
}

// tokens limits a count so that sums of counts cannot overflow. It notes one that is not understood.
func (b *Billing) tokens(value []byte) int64 {
	const most = 1 << 40
	n, digits := integer(value), bytes.Trim(value, `"`)
	if n < 0 || n > most || n == 0 && !bytes.HasPrefix(digits, []byte("0")) && value != nil && string(value) != "null" {
		b.Miscounted = true
	}
	return min(max(0, n), most)
}
