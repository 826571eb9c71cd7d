package transcript

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"sync"
)

//go:embed prices.json
var builtInPrices []byte

const (
	priceSchema  = 1
	maxPriceFile = 1 << 20 // bytes of a price file
)

// LongContext is the input of a request, in tokens, above which a model's long-context price is that of all its tokens.
// Cache reads and writes count as input.
const LongContext = 200_000

// modelPrice is what a model's tokens cost.
type modelPrice struct {
	Match string `json:"match"` // the model's name; * stands for anything, and there may be several
	tokenRates
	Long *tokenRates `json:"long_context"` // of requests above LongContext; nil: the same
	// Fast is how many times as much fast mode costs; 0: not known, so that it has no price.
	Fast float64 `json:"fast"`
	// Regional is how many times as much a request costs that is kept in one region; 0: the same.
	Regional float64 `json:"regional"`
}

// tokenRates are what a million tokens of a kind cost, in US dollars.
type tokenRates struct {
	Input        float64 `json:"input"`
	Output       float64 `json:"output"`
	CacheRead    float64 `json:"cache_read"`
	CacheWrite5m float64 `json:"cache_write_5m"`
	CacheWrite1h float64 `json:"cache_write_1h"`
}

// Prices is a price list. It does not guess: an unknown model has no price. Safe for concurrent use.
type Prices struct {
	AsOf   string // the day it is of
	list   []modelPrice
	search *float64 // of a thousand web searches; nil: not known
}

// Cost is what tokens cost, as far as that is known.
type Cost struct {
	USD      float64
	Priced   int64 // tokens that USD is for
	Unpriced int64 // tokens of models without a price, and web searches if theirs is not known
}

// Known reports whether the cost is meaningful: a price is known for some tokens, or there are none.
func (c Cost) Known() bool { return c.Priced > 0 || c.Unpriced == 0 }

// Plus returns the sum.
func (c Cost) Plus(d Cost) Cost {
	return Cost{USD: c.USD + d.USD, Priced: c.Priced + d.Priced, Unpriced: c.Unpriced + d.Unpriced}
}

// DefaultPrices is the list that comes with the program: public list prices.
var DefaultPrices = sync.OnceValue(func() *Prices {
	p, err := ReadPrices(bytes.NewReader(builtInPrices))
	if err != nil {
		panic(err) // the file is part of the program; a test reads it
	}
	return p
})

// ReadPrices reads a price list in the form of prices.json. The error says what is wrong with it.
func ReadPrices(r io.Reader) (*Prices, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxPriceFile+1))
	if err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}
	if len(b) > maxPriceFile {
		return nil, fmt.Errorf("read prices: larger than %d bytes", maxPriceFile)
	}
	var doc struct {
		Schema    int          `json:"schema_version"`
		Currency  string       `json:"currency"`
		PerTokens int64        `json:"per_tokens"`
		AsOf      string       `json:"as_of"`
		Note      string       `json:"note"`
		Search    *float64     `json:"web_searches_per_1000"`
		Models    []modelPrice `json:"models"`
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}
	switch {
	case doc.Schema != priceSchema:
		return nil, fmt.Errorf("read prices: schema_version is %d, want %d", doc.Schema, priceSchema)
	case doc.Currency != "USD" || doc.PerTokens != 1_000_000:
		return nil, errors.New(`read prices: want "currency": "USD" and "per_tokens": 1000000`)
	case len(doc.Models) == 0:
		return nil, errors.New("read prices: models is empty")
	}
	for _, m := range doc.Models {
		if err := m.check(); err != nil {
			return nil, fmt.Errorf("read prices: %w", err)
		}
	}
	if doc.Search != nil && *doc.Search < 0 {
		return nil, errors.New("read prices: web_searches_per_1000 is below 0")
	}
	return &Prices{AsOf: doc.AsOf, list: doc.Models, search: doc.Search}, nil
}

func (p modelPrice) check() error {
	if p.Match == "" {
		return errors.New("a model has no match")
	}
	rates := []tokenRates{p.tokenRates, {Input: p.Fast, Output: p.Regional}}
	if p.Long != nil {
		rates = append(rates, *p.Long)
	}
	for _, r := range rates {
		for _, v := range []float64{r.Input, r.Output, r.CacheRead, r.CacheWrite5m, r.CacheWrite1h} {
			if v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
				return fmt.Errorf("model %q has a price below 0", p.Match)
			}
		}
	}
	return nil
}

// Of returns a model's price: the first that matches its name as Anthropic writes it, with the surcharges of its region
// and speed, or as it is written.
func (p *Prices) Of(model string) (modelPrice, bool) {
	whole, plain := strings.ToLower(model), parseName(model)
	for _, x := range p.list {
		switch m := strings.ToLower(x.Match); {
		case matches(m, plain.model):
			return x.times(plain)
		case matches(m, whole):
			return x, true
		}
	}
	return modelPrice{}, false
}

// times returns the price with the surcharges of a name; false if one of them is not known.
func (p modelPrice) times(n name) (modelPrice, bool) {
	factor := 1.0
	if n.fast {
		factor *= p.Fast
	}
	if n.regional && p.Regional != 0 {
		factor *= p.Regional
	}
	p.tokenRates = p.tokenRates.times(factor)
	if p.Long != nil {
		long := p.Long.times(factor)
		p.Long = &long
	}
	return p, factor > 0
}

func (r tokenRates) times(factor float64) tokenRates {
	return tokenRates{
		Input: factor * r.Input, Output: factor * r.Output, CacheRead: factor * r.CacheRead,
		CacheWrite5m: factor * r.CacheWrite5m, CacheWrite1h: factor * r.CacheWrite1h,
	}
}

// matches compares name with a pattern in which * stands for any text.
func matches(pattern, name string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	if !ok {
		return false
	}
	for {
		part, next, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], next
	}
}

// Cost returns what a model's tokens and web searches cost. long says that each of the requests they are of was above
// LongContext.
func (p *Prices) Cost(model string, u Usage, long bool) Cost {
	x, ok := p.Of(model)
	if !ok {
		return Cost{Unpriced: u.Total()}
	}
	r := x.tokenRates
	if long && x.Long != nil {
		r = *x.Long
	}
	usd := r.Input*float64(u.Input) + r.Output*float64(u.Output) + r.CacheRead*float64(u.CacheRead) +
		r.CacheWrite5m*float64(u.CacheWrite5m) + r.CacheWrite1h*float64(u.CacheWrite1h)
	cost := Cost{USD: usd / 1e6, Priced: u.Total()}
	switch {
	case p.search != nil:
		cost.USD += *p.search * float64(u.WebSearches) / 1e3
	case u.WebSearches > 0:
		cost.Unpriced = u.WebSearches
	}
	return cost
}

// name is what the spelling of a model's name says.
type name struct {
	model    string // as Anthropic writes it, in lower case, without date and version: "claude-opus-4-8"
	fast     bool   // of fast mode
	regional bool   // of an endpoint that keeps requests in one region
}

// spellings find the parts of a model's name that clouds, gateways and settings add or write otherwise.
type spellings struct{ decoration, profile, region, swapped, series *regexp.Regexp }

var patterns = sync.OnceValue(func() spellings {
	return spellings{
		// A date, a version, "[1m]", "-thinking", ":beta" behind the name.
		decoration: regexp.MustCompile(`(\[[^\]]*\]|[-@]\d{8}|[-@]latest|@default|-v\d+(:\d+)?|:\d+|[-:]thinking|:beta)$`),
		// "us.anthropic." of Bedrock's inference profiles.
		profile: regexp.MustCompile(`(?:^|[/:])([a-z-]+)\.anthropic\.$`),
		// "us/" of inference_geo, which gateways write too; "bedrock/eu-west-1/".
		region: regexp.MustCompile(`(?:^|/)(?:us|eu|apac|jp|au|[a-z]{2}(?:-[a-z]+)+-\d)/(?:anthropic\.)?$`),
		// "claude-4.5-sonnet" and "claude-4-opus".
		swapped: regexp.MustCompile(`^claude-([4-9](?:-\d{1,2})?)-(fable|mythos|opus|sonnet|haiku)$`),
		// "claude-haiku-3-5", which Anthropic calls "claude-3-5-haiku".
		series: regexp.MustCompile(`^claude-(opus|sonnet|haiku)-(3(?:-\d)?)$`),
	}
})

// parseName reads a model's name in any of the spellings.
func parseName(model string) name {
	p, rest := patterns(), strings.ToLower(model)
	n := name{model: rest}
	at := strings.LastIndex(rest, "claude-")
	if at < 0 {
		return n
	}
	prefix, rest := rest[:at], rest[at:]
	profile := p.profile.FindStringSubmatch(prefix)
	n.regional = profile != nil && profile[1] != "global" || p.region.MatchString(prefix)
	n.fast = strings.HasPrefix(prefix, "fast/") || strings.Contains(prefix, "/fast/")
	for {
		if found := p.decoration.FindStringIndex(rest); found != nil && found[0] > 0 {
			rest = rest[:found[0]]
		} else if plain, ok := strings.CutSuffix(rest, "-fast"); ok {
			rest, n.fast = plain, true
		} else {
			break
		}
	}
	rest = strings.ReplaceAll(rest, ".", "-")
	rest = p.swapped.ReplaceAllString(rest, "claude-$2-$1")
	n.model = p.series.ReplaceAllString(rest, "claude-$2-$1")
	return n
}

// Sizes of context windows, in tokens.
const (
	StandardWindow = 200_000
	LargeWindow    = 1_000_000
)

// NativeWindow returns the size of a model's context window in tokens, 0 if the model is not known. Where a larger
// window is optional, which transcripts do not record, it is the smaller one. Source: Anthropic's model overview.
func NativeWindow(model string) int64 {
	base, asked := strings.CutSuffix(model, "[1m]")
	family, version := modelFamily(base)
	elsewhere := strings.Contains(model, "anthropic.") || strings.Contains(model, "@") // Bedrock; Vertex
	switch {
	case family == "":
		return 0
	case asked, family == "fable", family == "mythos", family == "sonnet" && version >= 500,
		family == "haiku" && version >= 505:
		return LargeWindow
	case family == "opus" && version == 407, family == "opus" && version > 407 && !elsewhere:
		return LargeWindow
	}
	return StandardWindow
}

// AskedWindow returns the size of the window that was asked for next to a model's name; 0 if none was. said is a name
// like AskedModel, or what Claude Code prints when the model is chosen.
func AskedWindow(said string) int64 {
	if strings.Contains(said, "[1m]") || strings.Contains(said, "1M context") {
		return LargeWindow
	}
	return 0
}

// SameModel reports whether an answer's model is the one that was asked for. Names like "opus[1m]" are any of a family,
// "" is any.
func SameModel(asked, model string) bool {
	base, _, _ := strings.Cut(asked, "[")
	return base == "" || strings.Contains(model, base)
}

// modelFamily splits a model's name: claude-opus-4-7-20260101 is "opus" and 407, claude-3-5-sonnet-20241022 is "sonnet"
// and 305.
func modelFamily(model string) (family string, version int) {
	parts := strings.FieldsFunc(model, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	for i, part := range parts {
		switch part {
		case "opus", "sonnet", "haiku", "fable", "mythos":
			after := i + 1
			for after < len(parts) && after < i+3 && isVersion(parts[after]) {
				after++
			}
			if after > i+1 {
				return part, modelVersion(parts[i+1 : after])
			}
			before := i
			for before > 0 && before > i-2 && isVersion(parts[before-1]) {
				before--
			}
			return part, modelVersion(parts[before:i])
		}
	}
	return "", 0
}

// isVersion reports whether a part is a version number rather than a date or a word.
func isVersion(part string) bool {
	return len(part) <= 2 && strings.Trim(part, "0123456789") == ""
}

// modelVersion is 100 times the first number plus the second.
func modelVersion(parts []string) int {
	v := 0
	for i, part := range parts {
		n := int(integer([]byte(part)))
		if i == 0 {
			n *= 100
		}
		v += n
	}
	return v
}
