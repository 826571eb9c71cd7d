package redact

import "slices"

// builtin returns the table of built-in rules. Every rule names the document that it is written from.
func builtin() []Rule {
	return slices.Concat(cloudRules, serviceRules, prefixRules, newerRules, urlRules, forgeRules, chatRules, paymentRules, vendorRules, registryRules,
		modelRules, fileRules, commandRules, pipeRules, genericRules, callRules)
}

// token returns a rule for secrets that start with one of some literals.
func token(name, source, pattern string, literals ...string) Rule {
	return Rule{Name: name, Source: source, Pattern: pattern, Literals: literals, Token: true, After: 192}
}

// random returns a rule for a token that words with hyphens may look like: it has so many bits a character at least.
func random(bits float64, r Rule) Rule {
	r.Entropy = bits
	return r
}

// mixed returns a rule for a long token that begins as binary data may, in base64 or in hexadecimal digits.
func mixed(r Rule) Rule {
	r.mixed = true
	return r
}

var cloudRules = []Rule{
	token("aws-key", "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html",
		`(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z2-7]{16}\b`, "AKIA", "ASIA", "ABIA", "ACCA", "A3T"),
	{
		Name:     "aws-secret",
		Source:   "https://docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_access-keys.html",
		Pattern:  `(?i)secret_?(?:access_?)?key["']?[ \t]*(?:[:=]|=>)\s*["']?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|\z)`,
		Literals: []string{"secret_access_key", "secretaccesskey", "secret_key", "secretkey"}, Fold: true, near: assignment,
	},
	{
		Name:     "aws-session",
		Source:   "https://docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_temp_use-resources.html",
		Pattern:  `(?i)session_?token["']?[ \t]*(?:[:=]|=>)\s*["']?([A-Za-z0-9/+]{100,}={0,2})`,
		Literals: []string{"session_token", "sessiontoken"}, Fold: true, near: assignment, After: 1500,
	},
	token("gcp-api-key", "https://cloud.google.com/docs/authentication/api-keys", `AIza[\w-]{35}`, "AIza"),
	token("gcp-client-secret", "https://developers.google.com/identity/protocols/oauth2", `GOCSPX-[\w-]{28}`, "GOCSPX-"),
	token("gcp-access-token", "https://developers.google.com/identity/protocols/oauth2", `ya29\.[\w-]{20,}`, "ya29."),
	token("gcp-refresh-token", "https://developers.google.com/identity/protocols/oauth2", `1//0[\w-]{40,}`, "1//0"),
	{
		Name:     "gcp-key-id",
		Source:   "https://cloud.google.com/iam/docs/keys-create-delete",
		Pattern:  `private_key_id"\s*:\s*"([0-9a-f]{40})"`,
		Literals: []string{"private_key_id"},
	},
	{
		Name:     "azure-storage",
		Source:   "https://learn.microsoft.com/azure/storage/common/storage-configure-connection-string",
		Pattern:  `(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{42,86}={1,2})`,
		Literals: []string{"AccountKey=", "SharedAccessKey="},
	},
	{
		Name:     "azure-secret",
		Source:   "https://learn.microsoft.com/purview/sit-defn-azure-ad-client-secret",
		Pattern:  `(?:[^\w.~-]|\A)([\w.~-]{3}[0-9]Q~[\w.~-]{31,34})(?:[^\w.~-]|\z)`,
		Literals: []string{"0Q~", "1Q~", "2Q~", "3Q~", "4Q~", "5Q~", "6Q~", "7Q~", "8Q~", "9Q~"}, Before: 16, After: 64,
	},
	{
		Name:     "azure-sas",
		Source:   "https://learn.microsoft.com/rest/api/storageservices/create-service-sas",
		Pattern:  `[?&]sig=([A-Za-z0-9%+/]{40,}(?:%3[dD]|=))`,
		Literals: []string{"&sig=", "?sig="},
	},
	token("digitalocean", "https://docs.digitalocean.com/reference/api/create-personal-access-token/",
		`do[opr]_v1_[a-f0-9]{64}\b`, "doo_v1_", "dop_v1_", "dor_v1_"),
	token("heroku", "https://devcenter.heroku.com/articles/authentication", `HRKU-[\w-]{36,}`, "HRKU-"),
	token("alibaba", "https://www.alibabacloud.com/help/ram/user-guide/create-an-accesskey-pair",
		`LTAI[A-Za-z0-9]{12,24}\b`, "LTAI"),
	token("databricks", "https://docs.databricks.com/dev-tools/auth/pat.html", `dapi[a-f0-9]{32}(?:-\d)?\b`, "dapi"),
	token("vault", "https://developer.hashicorp.com/vault/docs/concepts/tokens", `hv[sbr]\.[\w-]{24,}`,
		"hvs.", "hvb.", "hvr."),
	{
		Name:     "terraform",
		Source:   "https://developer.hashicorp.com/terraform/cloud-docs/users-teams-organizations/api-tokens",
		Pattern:  `\b([A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70})`,
		Literals: []string{".atlasv1."}, Before: 20,
	},
	token("pulumi", "https://www.pulumi.com/docs/pulumi-cloud/access-management/access-tokens/",
		`pul-[a-f0-9]{40}\b`, "pul-"),
	token("fly", "https://fly.io/docs/security/tokens/", `(?:fo1_[\w-]{43}|fm2_[A-Za-z0-9+/=_-]{60,})`, "fo1_", "fm2_"),
	token("netlify", "https://docs.netlify.com/api/get-started/", `nfp_[A-Za-z0-9]{36}\b`, "nfp_"),
	token("supabase", "https://supabase.com/docs/guides/api/api-keys",
		`(?:sbp_[a-z0-9]{40}\b|sb_secret_[\w-]{20,})`, "sbp_", "sb_secret_"),
	token("planetscale", "https://planetscale.com/docs/api/reference/service-tokens",
		`pscale_(?:tkn|pw|oauth)_[\w.=-]{32,64}`, "pscale_"),
	token("render", "https://render.com/docs/api", `rnd_[A-Za-z0-9]{28,32}\b`, "rnd_"),
	{
		Name:     "cloudflare-ca",
		Source:   "https://developers.cloudflare.com/fundamentals/api/get-started/ca-keys/",
		Pattern:  `\b(v1\.0-[a-f0-9]{24}-[a-f0-9]{146})\b`,
		Literals: []string{"v1.0-"},
	},
}

var serviceRules = []Rule{
	token("doppler", "https://docs.doppler.com/docs/service-tokens",
		`dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}`, "dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."),
	token("age",
		"https://github.com/C2SP/C2SP/blob/main/age.md", `AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}`,
		"AGE-SECRET-KEY-1"),
	token("1password", "https://developer.1password.com/docs/service-accounts/", `ops_eyJ[A-Za-z0-9+/_-]{100,}={0,3}`,
		"ops_eyJ"),
	token("tailscale", "https://tailscale.com/kb/1277/key-prefixes", `tskey-[a-z]+-[\w-]{16,}`, "tskey-"),
	token("dynatrace", "https://docs.dynatrace.com/docs/dynatrace-api/basics/dynatrace-api-authentication",
		`dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}`, "dt0c01.", "dt0s01.", "dt0s02.", "dt0s16."),
	token("grafana", "https://grafana.com/docs/grafana/latest/administration/service-accounts/",
		`(?:glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}\b|glc_[A-Za-z0-9+/]{32,}={0,2})`, "glsa_", "glc_"),
	token("new-relic", "https://docs.newrelic.com/docs/apis/intro-apis/new-relic-api-keys/",
		`NRAK-[A-Z0-9]{27}\b`, "NRAK-"),
	token("sentry", "https://docs.sentry.io/account/auth-tokens/",
		`(?:sntryu_[a-f0-9]{64}\b|sntrys_eyJ[A-Za-z0-9+/=_-]{80,})`, "sntryu_", "sntrys_eyJ"),
	token("postman", "https://learning.postman.com/docs/developer/postman-api/authentication/",
		`PMAK-[a-f0-9]{24}-[a-f0-9]{34}\b`, "PMAK-"),
	token("linear", "https://linear.app/developers/graphql",
		`lin_(?:api|oauth)_[A-Za-z0-9]{40,64}\b`, "lin_api_", "lin_oauth_"),
	token("notion", "https://developers.notion.com/docs/authorization",
		`(?:ntn_[A-Za-z0-9]{40,50}|secret_[A-Za-z0-9]{43})\b`, "ntn_", "secret_"),
	token("figma",
		"https://www.figma.com/developers/api#access-tokens", `fig[dor]_[\w-]{36,}`, "figd_", "figo_", "figr_"),
	token("atlassian",
		"https://support.atlassian.com/atlassian-account/docs/manage-api-tokens-for-your-atlassian-account/",
		`AT(?:ATT3|CTT3)[\w=-]{100,}`, "ATATT3", "ATCTT3"),
	token("shopify", "https://shopify.dev/docs/apps/build/authentication-authorization",
		`shp(?:at|ca|pa|ss|ua)_[a-fA-F0-9]{32}\b`, "shpat_", "shpca_", "shppa_", "shpss_", "shpua_"),
	token("sendgrid", "https://www.twilio.com/docs/sendgrid/ui/account-and-settings/api-keys",
		`SG\.[\w-]{22}\.[\w-]{43}`, "SG."),
	{
		Name:     "mailgun",
		Source:   "https://documentation.mailgun.com/docs/mailgun/user-manual/get-started/",
		Pattern:  `\b(key-[0-9a-f]{32})\b`,
		Literals: []string{"key-"}, Before: 8, After: 48,
	},
	{
		Name:     "mailchimp",
		Source:   "https://mailchimp.com/developer/marketing/guides/quick-start/",
		Pattern:  `\b([0-9a-f]{32}-us\d{1,2})\b`,
		Literals: []string{"-us1", "-us2", "-us3", "-us4", "-us5", "-us6", "-us7", "-us8", "-us9"}, Before: 40, After: 8,
	},
	token("okta", "https://developer.okta.com/docs/guides/create-an-api-token/", `SSWS 00[\w-]{40}`, "SSWS 00"),
	token("contentful", "https://www.contentful.com/developers/docs/references/authentication/",
		`CFPAT-[\w-]{43}`, "CFPAT-"),
	token("langsmith",
		"https://docs.smith.langchain.com/administration/how_to_guides/organization_management/create_account_api_key",
		`lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}\b`, "lsv2_"),
}

var forgeRules = []Rule{
	token("github",
		"https://docs.github.com/authentication/keeping-your-account-and-data-secure/about-authentication-to-github",
		`gh[pousr]_[A-Za-z0-9]{36,255}\b`, "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
	token("github-pat",
		"https://docs.github.com/authentication/keeping-your-account-and-data-secure/about-authentication-to-github",
		`github_pat_\w{60,}`, "github_pat_"),
	token("gitlab", "https://docs.gitlab.com/security/tokens/#token-prefixes",
		`gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt|oas|ffct|wt)-[\w.-]{20,}`,
		"glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-", "glagent-", "glimt-",
		"gloas-", "glffct-", "glwt-"),
	token("bitbucket", "https://support.atlassian.com/bitbucket-cloud/docs/app-passwords/",
		`ATBB[A-Za-z0-9]{32}\b`, "ATBB"),
}

var chatRules = []Rule{
	token("slack", "https://api.slack.com/concepts/token-types", `xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}`,
		"xoxa-", "xoxb-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-"),
	token("slack-app", "https://api.slack.com/concepts/token-types", `xapp-\d-[A-Z0-9]+-\d+-[a-f0-9]+`, "xapp-"),
	{
		Name:     "slack-webhook",
		Source:   "https://api.slack.com/messaging/webhooks",
		Pattern:  `hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{40,})`,
		Literals: []string{"hooks.slack.com"},
	},
	{
		Name:     "discord-webhook",
		Source:   "https://discord.com/developers/docs/resources/webhook",
		Pattern:  `discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{17,20}/([\w-]{60,80})`,
		Literals: []string{"/webhooks/"},
	},
	{
		Name:     "telegram",
		Source:   "https://core.telegram.org/bots/api#authorizing-your-bot",
		Pattern:  `(?:[^0-9A-Za-z]|bot|\A)(\d{8,10}:AA[\w-]{33})(?:[^\w-]|\z)`,
		Literals: []string{":AA"}, Before: 16, After: 48,
	},
	{
		Name:     "teams-webhook",
		Source:   "https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook",
		Pattern:  `\.webhook\.office\.com/webhookb2/([\w@/-]{80,})`,
		Literals: []string{".webhook.office.com"},
	},
	{
		Name:     "twilio",
		Source:   "https://www.twilio.com/docs/iam/api-keys",
		Pattern:  `(?i:twilio)[^\r\n]{0,60}?\b((?:SK)?[0-9a-f]{32})\b`,
		Literals: []string{"twilio"}, Fold: true, near: nearby, After: 160,
	},
}

var paymentRules = []Rule{
	token("stripe", "https://docs.stripe.com/keys", `[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,}`,
		"sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_"),
	token("stripe-webhook", "https://docs.stripe.com/webhooks/signature", `whsec_[A-Za-z0-9+/]{32,}={0,2}`, "whsec_"),
	token("square", "https://developer.squareup.com/docs/build-basics/access-tokens",
		`sq0(?:atp|csp)-[\w-]{22,43}`, "sq0atp-", "sq0csp-"),
	mixed(token("square", "https://developer.squareup.com/docs/build-basics/access-tokens", `EAAA[\w-]{60}`, "EAAA")),
	token("braintree", "https://developer.paypal.com/braintree/docs/guides/authorization/overview",
		`access_token\$production\$[a-z0-9]{16}\$[a-f0-9]{32}`, "access_token$production$"),
	token("razorpay", "https://razorpay.com/docs/api/authentication/", `rzp_live_[A-Za-z0-9]{14}\b`, "rzp_live_"),
	token("flutterwave", "https://developer.flutterwave.com/docs/authentication",
		`FLWSECK(?:_TEST)?-[a-zA-Z0-9]{12,32}`, "FLWSECK"),
	token("easypost", "https://docs.easypost.com/docs/authentication", `EZ[AT]K[A-Za-z0-9]{54}\b`, "EZAK", "EZTK"),
	token("plaid", "https://plaid.com/docs/api/tokens/",
		`access-(?:sandbox|production|development)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`,
		"access-sandbox-", "access-production-", "access-development-"),
}

var registryRules = []Rule{
	token("npm", "https://docs.npmjs.com/about-access-tokens", `npm_[A-Za-z0-9]{36}\b`, "npm_"),
	{
		Name:     "npmrc",
		Source:   "https://docs.npmjs.com/cli/configuring-npm/npmrc#auth-related-configuration",
		Pattern:  `(?::_|\b_|npm)(?:[aA]uthToken|[aA]uthIdent|auth|password)[ \t]*[=:]\s*["']?((?:[^\s"'\\$<]|<[^/]){8,})`,
		Literals: []string{"_authToken", "_auth", "_password", "npmAuthToken", "npmAuthIdent"}, Before: 8, near: assignment, loose: true,
	},
	token("pypi", "https://pypi.org/help/#apitoken", `pypi-Ag[\w-]{50,}`, "pypi-Ag"),
	token("rubygems", "https://guides.rubygems.org/api-key-scopes/", `rubygems_[a-f0-9]{48}\b`, "rubygems_"),
	token("crates", "https://doc.rust-lang.org/cargo/reference/publishing.html", `cio[A-Za-z0-9]{32}\b`, "cio"),
	token("nuget", "https://learn.microsoft.com/nuget/nuget-org/scoped-api-keys", `oy2[a-z0-9]{43}\b`, "oy2"),
	token("docker", "https://docs.docker.com/security/access-tokens/",
		`dckr_(?:pat|oat)_[\w-]{24,}`, "dckr_pat_", "dckr_oat_"),
	token("clojars", "https://github.com/clojars/clojars-web/wiki/Deploy-Tokens", `CLOJARS_[a-z0-9]{60}\b`, "CLOJARS_"),
	token("artifactory", "https://jfrog.com/help/r/jfrog-platform-administration-documentation/access-tokens",
		`(?:AKCp[A-Za-z0-9]{68,70}|cmVmd[A-Za-z0-9]{59})\b`, "AKCp", "cmVmd"),
}

var modelRules = []Rule{
	token("anthropic", "https://docs.anthropic.com/en/api/overview", `sk-ant-[\w-]{20,}`, "sk-ant-"),
	token("openai", "https://platform.openai.com/docs/api-reference/authentication",
		`sk-(?:(?:proj|svcacct|admin|None|api)-[\w-]{20,}|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}\b|[A-Za-z0-9]{32,64}\b)`, "sk-"),
	token("openrouter",
		"https://openrouter.ai/docs/api-reference/authentication", `sk-or-v1-[a-f0-9]{64}\b`, "sk-or-v1-"),
	token("huggingface", "https://huggingface.co/docs/hub/security-tokens",
		`(?:hf_|api_org_)[A-Za-z0-9]{34,}\b`, "hf_", "api_org_"),
	token("groq", "https://console.groq.com/docs/quickstart", `gsk_[A-Za-z0-9]{52}\b`, "gsk_"),
	token("perplexity", "https://docs.perplexity.ai/guides/getting-started", `pplx-[A-Za-z0-9]{48}\b`, "pplx-"),
	token("replicate", "https://replicate.com/docs/topics/security/api-tokens", `r8_[A-Za-z0-9]{37}\b`, "r8_"),
	token("xai", "https://docs.x.ai/docs/tutorial", `xai-[A-Za-z0-9_-]{70,120}`, "xai-"),
	token("together", "https://docs.together.ai/docs/quickstart", `tgp_v1_[\w-]{43}`, "tgp_v1_"),
	token("nvidia", "https://docs.api.nvidia.com/nim/reference/", `nvapi-[\w-]{60,}`, "nvapi-"),
	token("cerebras", "https://inference-docs.cerebras.ai/quickstart", `csk-[a-z0-9]{48}\b`, "csk-"),
	token("tavily", "https://docs.tavily.com/documentation/api-reference/introduction", `tvly-[\w-]{20,}`, "tvly-"),
	token("elevenlabs", "https://elevenlabs.io/docs/api-reference/authentication", `sk_[a-f0-9]{48}\b`, "sk_"),
}
