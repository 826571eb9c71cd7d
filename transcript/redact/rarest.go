package redact

import (
	"strings"
	"sync"
)

// rarest returns where the bytes of a literal start that are the least frequent in text: two runs of three or of four.
func rarest(text string) int {
	best, least := 0, 1<<30
	size := min(len(text), long)
	for i := 0; i+size <= len(text); i++ {
		part, score := strings.ToLower(text[i:i+size]), 0
		for _, c := range []byte(part) {
			score += frequency(c)
		}
		for n := range size - 2 {
			score += penalties()[part[n:n+3]]
		}
		if score < least {
			best, least = i, score
		}
	}
	return best
}

// penalties are those of runs of three characters in frequent and everywhere. It is a map because every program that
// masks waits for it when it starts.
var penalties = sync.OnceValue(func() map[string]int {
	of := map[string]int{}
	for at := range len(frequent) - 2 {
		of[frequent[at:at+3]] = 100
	}
	for at := range len(everywhere) - 2 {
		if run := everywhere[at : at+3]; of[run] <= 100 {
			of[run] += 400
		}
	}
	return of
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
	"utp val var vat ved ven vic whe win wit wri xis xte ypt yte "

// everywhere are the most common ones: sessionId, version and input_tokens have them, or a line of hyphens.
const everywhere = "" +
	"--- _in _to ach age ail ain all ame anc and are ata ate ath ati bra cac che ckp cli cmd com con cre cri dat " +
	"der ead eat eck ect enc ens ent era err ers ess est eta etu ext fil for gen git hec ile ime ing inp int ion " +
	"ipt ire ist ith ken kpo les lin mes met mit mmi nam nch nil npu nte nti ode oin oke olu omm omp ons ont ook " +
	"ool ork out par pat poi pro put ran rat rea ren rep res ret rin rip rom ror rro sag scr ser ses sio son ssa " +
	"ssi sta sto str t_t tat ted ten ter tes the tif tim tin tio tir tok too tor tra tre tri tur typ uid urn use " +
	"ut_ uui ver wor ype "

// frequency is roughly how often a byte occurs in transcripts.
func frequency(c byte) int {
	if n := strings.IndexByte("zqjxkvbpgfywmucldrhsnioate", c); n >= 0 {
		return 4 + n
	}
	if strings.IndexByte(" \"\\,:./-_", c) >= 0 {
		return 12
	}
	return 3
}
