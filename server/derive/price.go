package derive

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

	"github.com/ccship/ccship/server"
)

//go:embed prices.json
var defaultPrices []byte

const (
	priceSchema = 1
	maxPrices   = 1 << 20 // bytes of a price file
)

// Price is what a million tokens of a kind cost, in US dollars.
type Price struct {
	Match        string  `json:"match"` // the model's name; * stands for anything, and there may be several
	Input        float64 `json:"input"`
	Output       float64 `json:"output"`
	CacheRead    float64 `json:"cache_read"`
	CacheWrite5m float64 `json:"cache_write_5m"`
	CacheWrite1h float64 `json:"cache_write_1h"`
}

// Prices is a price list. It does not guess: an unknown model has no price. Safe for concurrent use.
type Prices struct {
	AsOf string // the day it is of
	list []Price
}

// Cost is what tokens cost, as far as that is known.
type Cost struct {
	USD      float64
	Priced   int64 // tokens that USD is for
	Unpriced int64 // tokens of models without a price
}

// Known reports whether the cost is meaningful: a price is known for some tokens, or there are none.
func (c Cost) Known() bool { return c.Priced > 0 || c.Unpriced == 0 }

// DefaultPrices is the list that comes with the program: public list prices.
var DefaultPrices = sync.OnceValue(func() *Prices {
	p, err := ReadPrices(bytes.NewReader(defaultPrices))
	if err != nil {
		panic(err) // the file is part of the program; a test reads it
	}
	return p
})

// ReadPrices reads a price list in the form of prices.json. The error says what is wrong with it.
func ReadPrices(r io.Reader) (*Prices, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxPrices+1))
	if err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}
	if len(b) > maxPrices {
		return nil, fmt.Errorf("read prices: larger than %d bytes", maxPrices)
	}
	var doc struct {
		Schema    int     `json:"schema_version"`
		Currency  string  `json:"currency"`
		PerTokens int64   `json:"per_tokens"`
		AsOf      string  `json:"as_of"`
		Note      string  `json:"note"`
		Models    []Price `json:"models"`
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
	return &Prices{AsOf: doc.AsOf, list: doc.Models}, nil
}

func (p Price) check() error {
	if p.Match == "" {
		return errors.New("a model has no match")
	}
	for _, v := range []float64{p.Input, p.Output, p.CacheRead, p.CacheWrite5m, p.CacheWrite1h} {
		if v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
			return fmt.Errorf("model %q has a price below 0", p.Match)
		}
	}
	return nil
}

// decoration is what clouds and settings append to a model's name: a date, a version, "[1m]".
var decoration = regexp.MustCompile(`(\[[^\]]*\]|[-@]\d{8}|[-@]latest|-v\d+(:\d+)?|:\d+)$`)

// plainModel is a model's name in lower case, without decoration.
func plainModel(model string) string {
	model = strings.ToLower(model)
	for {
		at := decoration.FindStringIndex(model)
		if at == nil || at[0] == 0 {
			return model
		}
		model = model[:at[0]]
	}
}

// Of returns a model's price: the first that matches its name, with or without decoration, in any case.
func (p *Prices) Of(model string) (Price, bool) {
	whole, plain := strings.ToLower(model), plainModel(model)
	for _, x := range p.list {
		if m := strings.ToLower(x.Match); matches(m, plain) || matches(m, whole) {
			return x, true
		}
	}
	return Price{}, false
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

// Cost is what a model's tokens cost.
func (p *Prices) Cost(model string, t server.Tokens) Cost {
	x, ok := p.Of(model)
	if !ok {
		return Cost{Unpriced: t.All()}
	}
	usd := x.Input*float64(t.Input) + x.Output*float64(t.Output) + x.CacheRead*float64(t.CacheRead) +
		x.CacheWrite5m*float64(t.CacheWrite5m) + x.CacheWrite1h*float64(t.CacheWrite1h)
	return Cost{USD: usd / 1e6, Priced: t.All()}
}

// Sum is what all rows cost together. Their Model must be set.
func (p *Prices) Sum(rows []server.UsageRow) Cost {
	var sum Cost
	for _, r := range rows {
		c := p.Cost(r.Model, r.Tokens)
		sum.USD += c.USD
		sum.Priced += c.Priced
		sum.Unpriced += c.Unpriced
	}
	return sum
}
