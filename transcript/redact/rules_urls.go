package redact

// pathKey is a key in the path of a URL, as vendors make them.
const pathKey = `([A-Za-z0-9_-]{20,}|[A-Za-z0-9]{10,19})(?:[^\w-]|\z)`

// urlRules are for keys that are parts of URLs: who has one may call the service, or post to the channel.
var urlRules = []Rule{
	{
		Name:   "url-key",
		Source: "https://docs.metamask.io/services/how-to/secure-an-api/",
		Pattern: `(?:infura\.io|alchemy\.com|alchemyapi\.io|ankr\.com|quiknode\.pro|tenderly\.co|blastapi\.io|getblock\.io|chainstack\.com|` +
			`nodereal\.io|llamarpc\.com|moralis-nodes\.com|figment\.io|chainnodes\.org|drpc\.org|zmok\.io)/(?:[a-z0-9.-]{1,19}/){0,4}` + pathKey,
		Literals: []string{"infura", "alchemy.com/", "alchemyapi.io/", "ankr.com/", "quiknode.pro/", "tenderly.co/", "blastapi.io/", "getblock.io/",
			"chainstack.com/", "nodereal.io/", "llamarpc.com/", "moralis-nodes.com/", "figment.io/", "chainnodes.org/", "drpc.org/", "zmok.io/"},
		Before: 2, After: 200, Entropy: 2.8, loose: true,
	},
	{
		Name:   "webhook",
		Source: "https://open.larksuite.com/document/client-docs/bot-v3/add-custom-bot",
		Pattern: `(?:open-apis/bot/v2/hook|maker\.ifttt\.com/trigger/[^/\s]{1,60}(?:/json)?/with/key|pagerduty\.com/(?:integration|x-ere)|` +
			`hooks\.zapier\.com/hooks/catch/\d{1,20}|hook\.(?:[a-z0-9]+\.)?(?:make|integromat)\.com|` +
			`rocket\.chat/hooks|mattermost\.[\w.-]+/hooks|hc-ping\.com|webhook\.site|m\.pipedream\.net)/(?:([A-Za-z0-9-]{20,})|([A-Za-z0-9]{6,19}))(?:[^\w-]|\z)`,
		Literals: []string{"/bot/v2/hook/", "/with/key/", "pagerduty.com/", "hooks.zapier", "make.com/", "integromat.com/",
			"rocket.chat/hooks", "mattermost.", "hc-ping.com/", "webhook.site/", "pipedream.net/"},
		Before: 80, After: 160, Entropy: 2.3,
	},
	{
		Name:     "teams-webhook",
		Source:   "https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook",
		Pattern:  `office\.com/webhook(?:b2)?/([\w@/-]{60,})`,
		Literals: []string{"office.com/webhook"}, Before: 2, After: 400,
	},
	{
		Name:     "query",
		Source:   "https://openweathermap.org/appid",
		Pattern:  `[?&](?:amp;)?(?:appid|app_key|apiToken|authtoken|zapikey|access_key)=([A-Za-z0-9_.-]{20,})(?:[^\w.-]|\z)`,
		Literals: []string{"appid=", "app_key=", "apiToken=", "authtoken=", "zapikey=", "access_key="}, Before: 8, After: 160, Entropy: 3.2, loose: true,
	},
	{
		Name:     "app-insights",
		Source:   "https://learn.microsoft.com/azure/azure-monitor/app/connection-strings",
		Pattern:  `InstrumentationKey=(` + uuid + `)`,
		Literals: []string{"InstrumentationKey="}, Before: 2, After: 64,
	},
	{
		Name:     "deepl",
		Source:   "https://developers.deepl.com/docs/getting-started/auth",
		Pattern:  `(?:^|[^\w-])(` + uuid + `:fx)(?:[^\w]|\z)`,
		Literals: []string{":fx"}, Before: 48, After: 4,
	},
	{
		Name:     "azure-ai",
		Source:   "https://learn.microsoft.com/purview/sit-defn-azure-cognitive-services-key",
		Pattern:  `(?:^|[^A-Za-z0-9])([A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{20,30}|[A-Za-z0-9]{32}JQQJ99[A-Za-z0-9]{20,46})(?:[^A-Za-z0-9]|\z)`,
		Literals: []string{"JQQJ99"}, Before: 56, After: 52,
	},
}

// newerRules are for further prefixes of tokens.
var newerRules = []Rule{
	token("stytch", "https://stytch.com/docs/api", `secret-(?:live|test)-[\w=-]{30,60}`, "secret-live-", "secret-test-"),
	token("inngest", "https://www.inngest.com/docs/platform/signing-keys", `signkey-[a-z]{4,8}-[a-f0-9]{32,64}\b`, "signkey-"),
	token("trigger", "https://trigger.dev/docs/apikeys", `tr_(?:prod|dev|stg|preview|pat)_[A-Za-z0-9]{16,48}\b`, "tr_prod_", "tr_dev_", "tr_stg_", "tr_preview_", "tr_pat_"),
	token("axiom", "https://axiom.co/docs/reference/tokens", `xa[ap]t-`+uuid, "xaat-", "xapt-"),
	token("xata", "https://xata.io/docs/concepts/api-keys", `xau_[A-Za-z0-9]{24,48}\b`, "xau_"),
	mixed(token("fauna", "https://docs.fauna.com/fauna/current/learn/security/keys/", `(fn[A-Z]{2}[\w-]{34,40})(?:[^\w-]|\z)`, "fnAC", "fnAD",
		"fnAE", "fnAF", "fnAG", "fnAH")),
	token("figma", "https://www.figma.com/developers/api#access-tokens", `figu[hr]?_[\w-]{40,}`, "figu_", "figuh_", "figur_"),
	token("trello", "https://developer.atlassian.com/cloud/trello/guides/rest-api/api-introduction/", `ATTA[a-f0-9]{60,76}\b`, "ATTA"),
	token("cal", "https://cal.com/docs/api-reference/v1/authentication", `cal_(?:live_|test_)[a-f0-9]{32}\b`, "cal_live_", "cal_test_"),
	token("cloudflare", "https://developers.cloudflare.com/fundamentals/api/get-started/token-formats/", `cf(?:[uact]t|k|o)_[A-Za-z0-9_-]{36,60}`,
		"cfut_", "cfat_", "cfct_", "cftt_", "cfk_", "cfo_"),
	token("instagram", "https://developers.facebook.com/docs/instagram-platform/", `IG(?:QV|QW|AA)[\w-]{60,}`, "IGQV", "IGQW", "IGAA"),
	random(3.6, token("twitter-bearer", "https://docs.x.com/fundamentals/authentication/oauth-2-0/application-only",
		`(A{21,24}[B-Za-z0-9%][A-Za-z0-9%]{30,120})(?:[^A-Za-z0-9+/=%]|\z)`, "AAAAAAAAAAAAAAAAAAAAA")),
	random(3.8, token("backblaze", "https://www.backblaze.com/docs/cloud-storage-application-keys", `(K00\d[A-Za-z0-9+/]{27})(?:[^A-Za-z0-9+/=]|\z)`,
		"K000", "K001", "K002", "K003", "K004", "K005")),
	random(4, token("model-key", "https://docs.litellm.ai/docs/proxy/virtual_keys", `(sk-(?:[a-z0-9]{2,16}-)?[A-Za-z0-9]{20,31})(?:[^\w-]|\z)`, "sk-")),
	token("age", "https://github.com/C2SP/C2SP/blob/main/age.md", `AGE-(?:SECRET-KEY-PQ|PLUGIN-[A-Z0-9]+)-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{30,}`,
		"AGE-SECRET-KEY-PQ-", "AGE-PLUGIN-"),
	token("minisign", "https://jedisct1.github.io/minisign/#signature-format", `RW(?:RTY0Iy|RCS[A-Za-z0-9+/]{3})[A-Za-z0-9+/]{100,}={0,2}`, "RWRTY0Iy", "RWRCS"),
}
