package redact

import (
	"math"
	"slices"
	"strings"
	"sync"
)

// planner chooses the frames by which a search finds literals: those that texts have the least often, beside those of
// other literals.
type planner struct {
	search         *search
	entries        [slots][]entry
	before, behind [slots]float64 // how many of the bytes in texts a slot takes
}

// frame is what a literal shows in one of its frames.
type frame struct {
	entry
	before, behind         uint64  // which bytes fit
	someBefore, someBehind float64 // how many of the bytes in texts these are
}

// plan enters two frames of a literal, one for each parity. Those of a short literal reach beyond it.
func (p *planner) plan(n int) {
	l := &p.search.literals[n]
	from, to := 0, len(l.text)-4
	if to <= 0 {
		from, to = -1, len(l.text)-3
	}
	if len(l.text) < shortest {
		to = 0
	}
	for parity := range 2 {
		var best frame
		least := math.Inf(1)
		for at := from; at <= to; at++ {
			if at&1 != parity {
				continue
			}
			f := l.frame(at)
			if cost := p.cost(&f) + rate(l.text[max(0, at):min(len(l.text), at+4)]); cost < least {
				best, least = f, cost
			}
		}
		best.literal = uint16(n)
		p.enter(&best)
	}
}

// frame returns the frame at an offset in a literal.
func (l *literal) frame(at int) (f frame) {
	f.at = int8(at)
	for i := range 4 {
		if at+i < 0 || at+i >= len(l.text) {
			continue
		}
		c := l.text[at+i]
		if l.fold && c >= 'a' && c <= 'z' {
			f.fold |= 0x20 << (8 * i)
		}
		f.want |= uint32(c) << (8 * i)
		f.mask |= 0xff << (8 * i)
	}
	f.before, f.someBefore = f.fitting(0)
	f.behind, f.someBehind = f.fitting(24)
	return f
}

// fitting returns the bytes that fit a frame at a position in it, in bits, and how many of the bytes in texts they are.
func (e *entry) fitting(bit int) (set uint64, some float64) {
	if e.mask>>bit&0xff == 0 {
		return math.MaxUint64, 1
	}
	c := byte(e.want >> bit)
	set, some = 1<<(c%64), share(c)
	if e.fold>>bit&0xff != 0 {
		c ^= 0x20
		set, some = set|1<<(c%64), some+share(c)
	}
	return set, some
}

// middles calls enter with the pairs of bytes that may be in the middle of a frame.
func (e *entry) middles(enter func(middle uint16)) {
	want, mask, fold := uint16(e.want>>8), uint16(e.mask>>8), uint16(e.fold>>8)
	for extra := ^mask; ; extra = (extra - 1) & ^mask {
		for cases := fold; ; cases = (cases - 1) & fold {
			enter(want&^fold | cases | extra)
			if cases == 0 {
				break
			}
		}
		if extra == 0 {
			return
		}
	}
}

// cost estimates how many frames of a text fit a slot only because of a further frame.
func (p *planner) cost(f *frame) float64 {
	middle := uint16(f.want >> 8)
	n := slotOf(middle)
	s, before, behind := &p.search.slots[n], p.before[n], p.behind[n]
	if f.before&^s.before != 0 {
		before = min(1, before+f.someBefore)
	}
	if f.behind&^s.behind != 0 {
		behind = min(1, behind+f.someBehind)
	}
	const each = 0.001 // a frame costs also where others fit
	return pairs()[middle] * (before*behind - p.before[n]*p.behind[n] + each)
}

// enter adds a frame to its slots, and its hashes.
func (p *planner) enter(f *frame) {
	f.middles(func(middle uint16) {
		n := slotOf(middle)
		s := &p.search.slots[n]
		if f.before&^s.before != 0 {
			p.before[n] = min(1, p.before[n]+f.someBefore)
		}
		if f.behind&^s.behind != 0 {
			p.behind[n] = min(1, p.behind[n]+f.someBehind)
		}
		s.before, s.behind = s.before|f.before, s.behind|f.behind
		if !slices.Contains(p.entries[n], f.entry) {
			p.entries[n] = append(p.entries[n], f.entry)
		}
		frame := f.want&0xff0000ff | uint32(middle)<<8 | folded
		switch {
		case f.mask == 0xffff00: // any byte behind, as for one that is in the literal
			for c := range uint32(256) {
				p.exact(ofLast(frame | c<<24))
			}
		case f.mask&0xff == 0:
			p.exact(ofLast(frame))
		case f.mask>>24 == 0:
			p.exact(ofFirst(frame))
		default:
			p.exact(ofFour(frame))
		}
	})
}

func (p *planner) exact(h uint32) { p.search.exact[h/64] |= 1 << (h % 64) }

// common is how often texts have one of frequent.
const common = 0.0006

// rate estimates how often texts have a part of a literal.
func rate(part string) float64 {
	least := math.Inf(1)
	for n := range len(part) - 2 {
		text := strings.ToLower(part[n : n+3])
		rate := max(0.00004, triples()[text])
		if strings.Contains(text, " ") {
			rate = common // beside a space, most pairs of letters are
		}
		least = min(least, rate)
	}
	switch {
	case len(part) < 3:
		return 0
	case len(part) > 3:
		return least / 2
	}
	return least
}

// triples estimates how often texts have three bytes in a row, of any case, if that is often.
var triples = sync.OnceValue(func() map[string]float64 {
	all := map[string]float64{}
	for text := range strings.FieldsSeq(frequent) {
		all[text] = common
	}
	for text := range strings.FieldsSeq(everywhere) {
		all[text] = 0.002
	}
	return all
})

// pairs estimates how often texts have two bytes in a row.
var pairs = sync.OnceValue(func() *[1 << 16]float64 {
	all := new([1 << 16]float64)
	for pair := range all {
		all[pair] = share(byte(pair)) * share(byte(pair>>8))
	}
	for text, rate := range triples() {
		for n := range 2 {
			all[uint16(text[n])|uint16(text[n+1])<<8] += 0.6 * rate
		}
	}
	return all
})

// frequent are sequences of three characters that are common in transcripts: in English, in code, and in names.
const frequent = "" +
	"-co _co _cr _id _re _se _te _us abl ace ack act ad_ ada add ado al_ ale alf ali als amp ang ans ant anu app " +
	"ard arg ari ars art ary ase ash ask aso ass atc att atu aud aut bac bas bin ble blo but byt cal cat ce_ cha " +
	"chi cla cod cry cte cti cto cts ctx cur cwd d_i dar de- dec ded del den des dev dif din dir dow dup e_c e_r " +
	"e_t ear eas ech eco ees efe efi egy eid ele eme emo emp ena end ene env epa eph epo equ er- ere eri ern ert " +
	"erv ese esu ete ett eve exi exp fai fal fat fer fie fix fmt fol fro ful fun ges get gin go- gra gre h_i had " +
	"hai han has hat he_ hea hed hem hen her hin his hoo hou hub ica ice ide ier ies ifi ild imp inc ind ine inf " +
	"ini ins ipn iss itb ite iti its itt iva ive ize jec jso key kin ksp ktr l_u lan lat lau lde lea led lem len " +
	"lep ler let lex lic lis loa loc log lse lu_ lug lus m_i mai man mar mat men mer min mma mod mpl mpo mpt msg " +
	"n_i nal nce ncr nda nde ner nes new nfi nfu ng- nge ngs nid nin not nsc nst nt- nt_ nta ntf ntr nts ntt ntu " +
	"nua nul oad oca odi ogr oje oks ol_ old ole oli on_ ond one onf oni onl op_ ope oph opt ore orf orm ort ory " +
	"ost oul oun our ove pac pda pec pen per phe pla ple plu pns por pos ppe pre pri pte pti pts pus que rac rai " +
	"ral rap rce rch re- rec red ree ref rem req rev rge rie rit riv rks rkt rma rna rog rol rre rsi rst rty rue " +
	"run rvi ryp sec sed sei seq set sg_ sha sho sid sin sis ski slu sop sou spa std ste sti sts sub sul sum syn " +
	"tad tag tai tal tam tan tar tas tbr tch tco tde teg tem tex tfo tha thi tho ths thu tid tie top tpu tru try " +
	"tse tst tte tti tto ttr tuu ual ude uen ues ula uld ull ult umb umm unc und unt upd urc ure urr usa uth uti " +
	"utp val var vat ved ven vic whe win wit wri xis xte ypt yte " +
	"apt dap fie ied ifi itt kup nab rma tia tup "

// everywhere are the most common ones: sessionId, version and input_tokens have them, or a line of hyphens.
const everywhere = "" +
	"--- _in _to ach age ail ain all ame anc and are ata ate ath ati bra cac che ckp cli cmd com con cre cri dat " +
	"der ead eat eck ect enc ens ent era err ers ess est eta etu ext fil for gen git hec ile ime ing inp int ion " +
	"ipt ire ist ith ken kpo les lin mes met mit mmi nam nch nil npu nte nti ode oin oke olu omm omp ons ont ook " +
	"ool ork out par pat poi pro put ran rat rea ren rep res ret rin rip rom ror rro sag scr ser ses sio son ssa " +
	"ssi sta sto str t_t tat ted ten ter tes the tif tim tin tio tir tok too tor tra tre tri tur typ uid urn use " +
	"ut_ uui ver wor ype "

// share is roughly how many of the bytes in texts are a given one.
func share(c byte) float64 {
	switch {
	case c >= 'A' && c <= 'Z':
		return share(c|0x20) / 12
	case c >= 'a' && c <= 'z':
		return float64(letters[c-'a']) / 1000
	case strings.IndexByte(" \"\\,:./-_", c) >= 0:
		return 0.025
	case c >= '0' && c <= '9':
		return 0.008
	}
	return 0.002
}

// letters are the shares of a to z, of a thousand.
var letters = [26]uint8{
	52, 10, 25, 28, 85, 14, 13, 20, 52, 2, 6, 30, 19,
	52, 48, 18, 1, 45, 46, 67, 22, 7, 10, 3, 11, 1,
}
