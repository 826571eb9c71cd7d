package redact

// What a program is given as a password: quoted in either way, or a word.
const commandValue = `(?:"((?:[^"\\\r\n]|\\[^\r\n"]){4,})"|'([^'\r\n]{4,})'|([^\s"'\\` + "`" + `|<>;&]{4,}))`

// onLine is what may be between a program's name and an option.
const onLine = `\b(?:[^\n|;&]|&[^&]|\\\n)*?[ \t]`

// program returns a rule for what follows an option of some programs.
func program(source, programs, option string, literals ...string) Rule {
	return Rule{
		Name: "command", Source: source, Pattern: `(?:^|[^\w.-])(?:` + programs + `)` + onLine + option + commandValue,
		Literals: literals, Before: 32, After: 480, near: command, loose: true,
	}
}

// commandRules are for secrets that programs are given on their command lines.
var commandRules = []Rule{
	program("https://dev.mysql.com/doc/refman/8.4/en/password-security-user.html",
		`(?:mysql|mariadb)(?:dump|admin|import|pump|sh|check|show|slap|binlog|-dump|-admin|-import|-check)?|mycli|percona-xtrabackup|xtrabackup`,
		`["']?-p`, "mysql", "mariadb", "mycli", "xtrabackup"),
	program("https://man7.org/linux/man-pages/man1/sshpass.1.html", `sshpass`, `-p[ \t]*`, "sshpass"),
	program("https://docs.docker.com/reference/cli/docker/login/", `[\w.-]+\s+(?:[\w-]+\s+)?login`, `(?:-p|-t)[= ]?[ \t]*`, " login"),
	program("https://redis.io/docs/latest/develop/tools/cli/", `(?:redis|valkey|keydb)-(?:cli|benchmark)`, `-a[ \t]*`,
		"redis-cli", "valkey-cli", "keydb-cli", "redis-benchmark"),
	program("https://www.mongodb.com/docs/mongodb-shell/reference/options/",
		`mongo(?:sh|dump|restore|export|import|stat|top|files)?|cqlsh|clickhouse-client|influx|twine\s+upload|ncftpput|rdesktop|xfreerdp|`+
			`crackmapexec|netexec|nxc|evil-winrm|smbmap|hydra|psexec(?:64)?|ftp|vncdo|svn|snowsql|vsql|bteq|kinit|nordvpn|`+
			`security\s+(?:unlock|set)-keychain[\w-]*|poetry\s+publish|sops|ksql|useradd|usermod|htdigest|mc|freerdp|wmiexec\.py|impacket-\w+|msfconsole|pscp|plink|putty|neo4j-admin|cypher-shell|arangosh|dse|presto|trino|rabbitmqadmin|airflow\s+users|xcrun\s+altool|certutil|racadm|yt-dlp|az\s+sql|winrs|hdbsql|nuget\s+(?:sources?\s+add|add\s+source)`,
		`-p[:= ]?[ \t]*`, "mongo", "cqlsh", "clickhouse-client", "influx", "twine", "ncftpput", "rdesktop", "freerdp", "crackmapexec", "netexec",
		"nxc ", "evil-winrm", "smbmap", "hydra", "psexec", "snowsql", "vsql", "unlock-keychain", "set-keychain", "poetry publish", "ksql ", "useradd", "usermod", "wmiexec",
		"impacket", "pscp", "plink", "cypher-shell", "arangosh", "trino ", "rabbitmqadmin", "airflow users", "xcrun altool", "certutil",
		"racadm", "yt-dlp", "az sql", "winrs", "hdbsql", "add source", "sources add"),
	program("https://learn.microsoft.com/sql/tools/sqlcmd/sqlcmd-utility",
		`sqlcmd|bcp|osql|isql|tsql|zip|unzip|mosquitto_(?:pub|sub)|ipmitool|knife|freebcp|mssql-cli|fisql|ssh-keygen|pdftk|zipcloak|qpdf|usql`, `-P[ \t]*`,
		"sqlcmd", "bcp ", "osql", "isql", "tsql", "zip ", "mosquitto_", "ipmitool", "mssql-cli", "ssh-keygen", "knife "),
	program("https://man.openbsd.org/ssh-keygen.1", `ssh-keygen`, `-N[ \t]*`, "ssh-keygen"),
	program("https://documentation.help/7-Zip/password.htm", `7z[azr]?|7zz|7za|p7zip|rar|unrar|arj`, `-h?p`, "7z ", "7za ", "7zr ", "7zz ", "7zip", "rar "),
	program("https://www.openldap.org/software/man.cgi?query=ldapsearch",
		`ldap(?:search|modify|add|delete|passwd|whoami|compare|modrdn|exop|vi)|slappasswd|kadmin(?:\.local)?|security\s+add-[a-z]+-password`,
		`(?:-w|-s)[ \t]*`, "ldap", "slappasswd", "kadmin", "security add-"),
	program("https://curl.se/docs/manpage.html#-u", `curl|wget|http|https|xh|lwp-request|curlie|siege|ab|hey|etcdctl|nats|rclone|lftp|gsutil|vegeta|httpie`,
		`(?:-u|-U|-a|-A|--user|--proxy-user|--auth|--auth-user)[= ]?[ \t]*["']?[^\s:"',]{1,100}[:,]`, "curl", "wget ", "http ", "https ", "xh ", "etcdctl",
		"nats ", "lftp", "siege "),
	{
		Name:   "command",
		Source: "https://curl.se/docs/manpage.html#-b",
		Pattern: `(?:^|[^\w.-])(?:curl|wget|http|https|xh|curlie)` + onLine + `(?:-b|--cookie)[= ]?[ \t]*["']?[\w.-]{1,60}=` +
			commandValue,
		Literals: []string{"curl"}, Before: 32, After: 480, near: cookieOption, loose: true,
	},
	program("https://www.samba.org/samba/docs/current/man-html/smbclient.1.html",
		`smbclient|rpcclient|net|smbget|mount\.cifs|wmic|winexe|smbpasswd`, `(?:-U|--user)[= ]?[ \t]*["']?[^\s%"']{1,100}%`, "smbclient", "rpcclient", "winexe", "smbget"),
	program("https://linux.die.net/man/1/snmpwalk", `snmp(?:walk|get|set|bulkwalk|getnext|table)`, `-[AX][ \t]*`, "snmp"),
	{
		Name:     "command",
		Source:   "https://docs.openssl.org/master/man1/openssl-passphrase-options/",
		Pattern:  `(?:^|[\s="'])pass:` + commandValue,
		Literals: []string{"pass:"}, Before: 4, near: words, loose: true,
	},
	program("https://docs.openssl.org/master/man1/openssl-enc/", `openssl\s+(?:enc|aes|des|rsa|pkcs)[\w-]*`, `-k[ \t]+`, "openssl "),
	{
		Name:   "command",
		Source: "https://learn.microsoft.com/windows-server/administration/windows-commands/net-use",
		Pattern: `(?i)\bnet\s+use\b[^\n|;]{0,200}?\s\\{1,4}[^\s"']+\s+(?:/\w+:\S+\s+)?` + commandValue + `|` +
			`\bnet\s+user\s+[^\s/]+\s+` + commandValue + `|\bnet\s+use\b[^\n|;]{0,200}?/user:\S+\s+` + commandValue,
		Literals: []string{"net use"}, Fold: true, Before: 2, loose: true, near: command,
	},
	{
		Name:     "command",
		Source:   "https://learn.microsoft.com/windows-server/administration/windows-commands/cmdkey",
		Pattern:  `(?i)\s/(?:pass|password[do]?|rp|p|pw):` + commandValue,
		Literals: []string{"/pass:", "/password:", "/passwordd:", "/passwordo:", "/rp:", "/p:", "/pw:"}, Fold: true, Before: 2, loose: true, near: words,
	},
	{
		Name:   "command",
		Source: "https://man7.org/linux/man-pages/man8/chpasswd.8.html",
		Pattern: `(?:echo|printf)\s+(?:-[neE]+\s+)?["']?[\w.$@{}-]{1,64}:([^\s"'|]{4,})["']?\s*\|\s*(?:sudo\s+)?(?:\S*/)?(?:chpasswd|newusers)|` +
			`chpasswd\b[^\n]{0,40}<<<\s*["']?[\w.-]{1,64}:([^\s"']{4,})|chpasswd\b[^\n]{0,40}<<-?\s*["']?\w+["']?\n[\w.-]{1,64}:([^\s"']{4,})`,
		Literals: []string{"chpasswd", "newusers"}, Before: 200, After: 200, loose: true, near: words,
	},
	{ // what is printed in two parts, or read from a string
		Name:   "command",
		Source: "https://www.gnu.org/software/bash/manual/bash.html#Here-Strings",
		Pattern: `printf\s+["'][^"'\r\n]{0,64}:%s(?:\\n)?["']\s+` + commandValue + `\s*\|\s*(?:sudo\s+)?(?:\S*/)?(?:chpasswd|newusers)|` +
			`(?:cryptsetup|gh\s+auth|gcloud\s+secrets|--password-stdin|--with-token|passwd\s+--stdin|read\s+(?:-\w+\s+)*\w*(?i:pass|pwd|token|secret)\w*)` +
			`[^\n|;&<]{0,160}<<<\s*` + commandValue,
		Literals: []string{"chpasswd", "newusers", "<<<"}, Before: 240, After: 160, loose: true, near: words,
	},
	{ // what is piped into a program that reads a password
		Name:   "command",
		Source: "https://docs.docker.com/reference/cli/docker/login/#password-stdin",
		Pattern: `(?:echo|printf|<<<)\s*(?:-[neE]+\s+)?(?:["']%s(?:\\n)?["']\s+)?` + commandValue + `\s*\|\s*(?:[^\n|]{0,120}?)` +
			`(?:--password-stdin|--with-token|--passphrase-fd|--stdin|sudo\s+(?:-\w+\s+)*-S|-pass(?:in)?\s+stdin|secret\s+(?:create|set|put)|cryptsetup|gh\s+auth|kinit|su\b)`,
		Literals: []string{"-stdin", "--with-token", "--passphrase-fd", "--stdin", "sudo", " stdin", "cryptsetup", "gh auth", "kinit", "secret create", "secret set", "secret put"},
		Before:   220, After: 60, loose: true, near: piped,
	},
	following(`(?:htpasswd\s+-\w*b\w*|wpa_passphrase|rabbitmqctl\s+(?:add_user|change_password)|poetry\s+config\s+http-basic\.\S+|`+
		`composer\s+config\s+(?:-\S+\s+)*http-basic\.\S+|bw\s+login|smbpasswd|mysql_config_editor)\s+\S+(?:\s+\S+)??|`+
		`cargo\s+login|vault\s+login|rclone\s+obscure|bw\s+unlock|poetry\s+config\s+pypi-token\.\S+|`+
		`composer\s+config\s+(?:-\S+\s+)*(?:github-oauth|gitlab-token|bearer)\.\S+|wifi\s+connect\s+\S+\s+password|`+
		`mc\s+(?:alias\s+set|config\s+host\s+add)\s+\S+\s+\S+\s+\S+|heroku\s+config:set\s+\w+=`,
		"htpasswd -", "wpa_passphrase", "rabbitmqctl", "poetry config", "composer config", "bw login", "cargo login", "vault login",
		"rclone obscure", "bw unlock", "wifi connect", "mc alias", "mc config", "config:set"),
	following(`user:password\s+\S+[ \t]|secret-set-value\s+\S+[ \t]|/setcredentials\s+\S+\s+\S+\s+\S+\s+\S+[ \t]|vmrun\s[^\n|;]*\s-gp|`+
		`swift\s[^\n|;]*\s-K|stats\s+auth\s+[\w.@-]+:|cache_peer\s[^\n]{0,200}\slogin=[\w.@-]+:|(?:set|change|reset)[_-]passw(?:or)?d\s+[\w.@-]+[ \t]|nsupdate\b[^\n|;]*\s-y\s+(?:[\w-]+:)?[\w.-]+:|--(?:src-|dest-)?creds[= ]+[\w.@-]+:|mosquitto_passwd\s+-b\s+\S+\s+\S+[ \t]|(?:netlify\s+env:set|glab\s+variable\s+set)\s+\w*(?i:pass|pwd|secret|token|key|auth|cred)\w*[ \t]|`+
		`ngrok\s+(?:config\s+add-)?authtoken|networksetup\s+-setairportnetwork\s+\w+\s+\S+[ \t]|\b(?:input|owner|user)_pw|`+
		`hash-password\s+--plaintext|radtest\s+[^\s;&|-][^\s;&|]*[ \t]|`+
		`bundle\s+config\s+(?:set\s+)?(?:--\w+\s+)?[\w-]+(?:\.[\w-]+)+\s+[\w.@-]+:|cloudflared\s+service\s+install|`+
		`(?:wifi-sec\.psk|802-1x\.password)`,
		"user:password", "secret-set-value", "/setcredentials", "vmrun ", "swift ", "stats auth", "cache_peer ", "set_passw", "set-passw", "change_passw", "change-passw", "reset-passw", "reset_passw", "nsupdate ", "creds",
		"mosquitto_passwd", "netlify env", "ngrok ", "add-authtoken", "glab variable", "-setairportnetwork", "input_pw", "owner_pw", "user_pw",
		"--plaintext", "radtest ", "bundle config", "cloudflared service", "wifi-sec.psk", "802-1x.password"),
	following(`npm\s+config\s+set\s+\S*(?:_auth\w*|_password|[tT]oken)|aws\s+(?:--\w+\s+\S+\s+)?configure\s+set\s+\S*(?:secret|token)\w*|`+
		`dotnet\s+user-secrets\s+set\s+\S+|gh\s+secret\s+set\s+\S+\s+(?:-b|--body)|doctl\s+auth\s+init\s+-t|`+
		`yarn\s+config\s+set\s+(?:-\w+\s+)?\S*(?:[aA]uthToken|[aA]uthIdent)|ansible-vault\s+encrypt_string|set_network\s+\d+\s+psk\s+['"]?|`+
		`iwconfig\s+\w+\s+key\s+s:|rclone\s+config\s+create\s+[^\n|;]*\s(?:pass|password|token|secret_access_key)|`+
		`ssm\s+put-parameter[^\n|;]*\s--value|keyvault\s+secret\s+set[^\n|;]*\s--value|gpg\b[^\n|;]*\s--passphrase|`+
		`dvc\s+remote\s+modify\s+(?:--local\s+)?\S+\s+(?:password|secret_access_key)|`+
		`nuget\s+(?:push|setapikey)(?:\s+[^-\s]\S*)?(?:\s+-k|\s+-ApiKey)?|git\s+config\s+(?:--\w+\s+)*\S*(?:[tT]oken|[pP]assword)|`+
		`pulumi\s+config\s+set\s+(?:--secret\s+\S+|\S*(?i:pass|secret|token|key)\S*)|fly(?:ctl)?\s+secrets\s+set\s+\w+=|wrangler\s+secret\s+put\s+\w+`,
		"npm config", "yarn config", "encrypt_string", "set_network", "iwconfig", "rclone config", "configure set", "user-secrets", "gh secret", "doctl auth", "put-parameter", "keyvault secret", "gpg ", "dvc remote",
		"nuget ", "git config", "pulumi config", "secrets set", "secret put"),
}

// following returns a rule for the word behind others.
func following(others string, literals ...string) Rule {
	return Rule{
		Name: "command", Source: "https://docs.npmjs.com/cli/commands/npm-config", Pattern: `(?:` + others + `)[= ]?[ \t]*` + commandValue,
		Literals: literals, Before: 48, After: 400, near: words, loose: true,
	}
}
