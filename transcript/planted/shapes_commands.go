package planted

// commands are command lines and assignments with secrets, one a line; ⏎ is the end of a line in them.
const commands = `
mysql -u root -p‹«p14»› app
mysql -h db -uroot -p'‹«p14»›' -e 'select 1'
mysqldump -uroot -p"‹«p14»›" app > x.sql
mysqladmin -u root -p‹«a12»› status
mysql --user=root --password=‹«p14»› app
MYSQL_PWD=‹«p14»› mysql -u root
PGPASSWORD=‹«p14»› psql -h db -U app
sudo PGPASSWORD='‹«p14»›' pg_dump app
psql "host=db user=app password=‹«a16»› dbname=app"
psql postgresql://app:‹«a16»›@db/app
sshpass -p ‹«p14»› ssh root@h
sshpass -p'‹«p14»›' scp a h:
sudo sshpass -p "‹«p14»›" rsync a h:
docker login -u kim -p ‹«p20»› registry.example.com
docker login --username kim --password ‹«p20»›
podman login -u kim -p '‹«p20»›' quay.io
echo ‹«p20»› | docker login -u kim --password-stdin
echo "‹«a40»›" | gh auth login --with-token
helm registry login -u kim -p ‹«p16»› r.example.com
az login --service-principal -u x -p ‹«a34»› --tenant t
redis-cli -h cache -a ‹«p20»› ping
redis-cli -a '‹«p20»›' INFO
redis-cli --pass ‹«a20»› ping
AUTH ‹«a24»›
mongosh -u admin -p ‹«p16»› --authenticationDatabase admin
mongosh "mongodb://admin:‹«a16»›@h:27017/app"
mongodump --username a --password '‹«p16»›' --db x
openssl enc -aes-256-cbc -pass pass:‹«p16»› -in a
openssl rsa -in k.pem -passin pass:‹«a16»› -out k
openssl pkcs12 -export -passout 'pass:‹«a16»›' -in c
openssl enc -d -aes256 -k ‹«a16»› -in a
zip -r -P ‹«p12»› a.zip dir
zip -e -P'‹«p12»›' a.zip dir
unzip -P ‹«p12»› a.zip
7z a -p‹«p14»› a.7z dir
7za x -p'‹«p14»›' a.7z
rar a -hp‹«a14»› a.rar dir
ldapsearch -x -D cn=admin,dc=x -w ‹«p14»› -b dc=x
ldapmodify -D cn=admin -w'‹«p14»›' -f a.ldif
ldappasswd -s ‹«p14»› uid=kim
curl -u kim:‹«p16»› https://h/
curl -u "kim:‹«p16»›" https://h/
curl --user 'kim:‹«p16»›' -sS https://h/
curl -s \⏎  -u kim:‹«a16»› \⏎  https://h/
curl -b 'session=‹«a32»›' https://h/
curl --cookie "sid=‹«a32»›; x=1" https://h/
curl -H 'Authorization: Bearer ‹«a40»›' https://h/
curl -H "X-Api-Key: ‹«a32»›" https://h/
curl --oauth2-bearer ‹«a40»› https://h/
curl -d 'username=kim&password=‹«a16»›' https://h/
curl -X POST -d '{"password":"‹«p16»›"}' https://h/
curl -x http://kim:‹«a16»›@proxy:3128 https://h/
wget --http-user=kim --http-password=‹«p16»› https://h/
wget --user kim --password '‹«p16»›' https://h/
wget --header='PRIVATE-TOKEN: ‹«a20»›' https://h/
http -a kim:‹«p16»› https://h/
http POST https://h/ X-Auth-Token:‹«a32»›
http POST https://h/ password=‹«a16»›
helm install x y --set auth.password=‹«a16»›
helm upgrade x y --set postgresql.auth.postgresPassword=‹«a16»›,replicas=2
helm install x y --set-string 'secrets.apiKey=‹«a32»›'
kubectl create secret generic s --from-literal=password=‹«p16»›
kubectl create secret generic s --from-literal=api-key='‹«p32»›'
kubectl create secret docker-registry r --docker-password=‹«p16»›
kubectl config set-credentials kim --token=‹«a40»›
net use Z: \\srv\share ‹«a14»› /user:kim
net use \\srv\share /user:dom\kim ‹«a14»›
net user kim ‹«a14»› /add
cmdkey /add:srv /user:kim /pass:‹«a14»›
echo 'kim:‹«a14»›' | chpasswd
echo "root:‹«p14»›" | sudo chpasswd
chpasswd <<< 'kim:‹«a14»›'
chpasswd <<EOF⏎kim:‹«a14»›⏎EOF
echo ‹«p14»› | sudo -S apt update
echo '‹«p14»›' | passwd --stdin kim
setx DB_PASSWORD ‹«p14»›
setx /M API_TOKEN "‹«p24»›"
set DB_PASSWORD=‹«p14»›
$env:DB_PASSWORD = "‹«p14»›"
$env:API_KEY='‹«p24»›'
ConvertTo-SecureString "‹«p14»›" -AsPlainText -Force
export GITHUB_TOKEN=‹«a40»›
export DB_PASS="‹«p14»›" && ./run
env API_SECRET=‹«a24»› ./run
docker run -e POSTGRES_PASSWORD=‹«p16»› postgres
docker run --env "MYSQL_ROOT_PASSWORD=‹«p16»›" mysql
docker build --build-arg NPM_TOKEN=‹«a36»› .
aws configure set aws_secret_access_key ‹«a40»›
aws rds modify-db-instance --master-user-password ‹«p16»›
aws secretsmanager create-secret --name x --secret-string ‹«a24»›
aws ssm put-parameter --name x --type SecureString --value ‹«a24»›
heroku config:set SECRET_KEY=‹«a32»›
fly secrets set DB_PASSWORD=‹«a20»›
npm config set //registry.example.com/:_authToken ‹«a36»›
poetry config pypi-token.pypi ‹«a40»›
poetry config http-basic.foo kim ‹«a16»›
composer config http-basic.repo.example.com kim ‹«a16»›
twine upload -u kim -p ‹«p16»› dist/*
cargo login ‹«a32»›
vault login ‹«a26»›
vault kv put secret/x password=‹«a16»›
terraform apply -var 'db_password=‹«p16»›'
TF_VAR_db_password=‹«p16»› terraform plan
ansible-playbook x.yml -e "ansible_become_pass=‹«a14»›"
htpasswd -b .htpasswd kim ‹«p14»›
htpasswd -bc /etc/nginx/.htpasswd kim '‹«p14»›'
gpg --batch --passphrase ‹«p16»› -d a.gpg
ssh-keygen -t ed25519 -N '‹«p16»›' -f k
keytool -genkey -storepass ‹«a14»› -keypass x
mvn deploy -Dgpg.passphrase=‹«a16»›
java -Djavax.net.ssl.keyStorePassword=‹«a14»› -jar x
gradle publish -Psigning.password=‹«a14»›
sqlcmd -S db -U sa -P ‹«p14»› -Q "select 1"
sqlplus app/‹«a14»›@db
sqlplus system/"‹«a14»›"@//h:1521/x
bcp t out f -U sa -P ‹«p14»›
smbclient //srv/x -U kim%‹«a14»›
mount -t cifs //s/x /m -o username=kim,password=‹«a14»›
lftp -u kim,‹«a14»› ftp.example.com
git clone https://kim:‹«a40»›@git.example.com/a/b
git clone https://oauth2:‹«a20»›@gitlab.example.com/a/b
CREATE USER kim IDENTIFIED BY '‹«p14»›';
ALTER USER app WITH PASSWORD '‹«p14»›';
CREATE ROLE app LOGIN PASSWORD '‹«p14»›'
CREATE LOGIN kim WITH PASSWORD = '‹«p14»›'
SET PASSWORD FOR 'kim'@'%' = '‹«p14»›'
GRANT ALL ON *.* TO 'kim'@'%' IDENTIFIED BY '‹«p14»›'
CREATE USER kim IDENTIFIED BY ‹«a14»›
Driver={ODBC};Server=db;Uid=sa;Pwd=‹«a14»›;
Data Source=db;User ID=app;Password=‹«p12»›;Pooling=true
jdbc:mysql://db/app?user=app&password=‹«a14»›
jdbc:oracle:thin:app/‹«a14»›@//db:1521/x
jdbc:sqlserver://db;user=sa;password=‹«a14»›;encrypt=true
https://h/cb#access_token=‹«a40»›&token_type=bearer
https://h/x?api_key=‹«a32»›&page=2
https://h/x?token=‹«a32»›
https://s3.amazonaws.com/b/k?X-Amz-Credential=x&X-Amz-Signature=‹«h64»›
https://storage.googleapis.com/b/o?X-Goog-Signature=‹«h128»›
https://d1.cloudfront.net/a?Expires=1&Signature=‹«a170»›&Key-Pair-Id=K
https://x.blob.core.windows.net/c?sv=2024-01-01&sig=‹«a42»%3D›
d['password'] = '‹«p14»›'
os.environ["DB_PASSWORD"] = "‹«p14»›"
ds.setPassword("‹«p14»›");
builder.withPassword('‹«p14»›')
client.set_api_key("‹«a32»›")
requests.get(u, auth=("kim", "‹«p14»›"))
HTTPBasicAuth('kim', '‹«p14»›')
new NetworkCredential("kim", "‹«p14»›")
DriverManager.getConnection(url, "app", "‹«p14»›")
const apiKey = "‹«a32»›";
const password: string = '‹«p14»›'
let db_password = "‹«p14»›";
var dbPassword = "‹«p14»›"
password := "‹«p14»›"
String password = "‹«p14»›";
private static final String API_SECRET = "‹«a32»›";
password = '‹«p14»›'
connect(host="db", user="app", password="‹«p14»›")
createPool({ host: 'db', user: 'a', password: '‹«p14»›' })
headers: { 'X-Api-Key': '‹«a32»›' }
headers = {"Authorization": "Token ‹«a40»›"}
fetch(u, {headers: {Authorization: 'Basic ‹«a24»=›'}})
req.Header.Set("Authorization", "Bearer ‹«a40»›")
Proxy-Authorization: Basic ‹«a24»=›
X-Vault-Token: ‹«a26»›
Cookie: session=‹«a40»›
Set-Cookie: sid=‹«a40»›; Path=/; HttpOnly
Ocp-Apim-Subscription-Key: ‹«h32»›
rabbitmqctl add_user kim ‹«a14»›
etcdctl --user root:‹«a14»› get x
mosquitto_pub -u kim -P ‹«a14»› -t x -m y
ipmitool -I lanplus -H h -U root -P ‹«a14»› power status
snmpwalk -v3 -u kim -A ‹«a14»› h
xfreerdp /u:kim /p:‹«a14»› /v:h
mc alias set m https://m ACCESS ‹«a40»›
rclone obscure ‹«a16»›
wpa_passphrase home ‹«a16»›
nmcli dev wifi connect home password ‹«a16»›
security unlock-keychain -p ‹«a14»› login.keychain
dotnet user-secrets set "Db:Password" "‹«a16»›"
dotnet nuget push x.nupkg --api-key ‹«a46»›
deploy --token=‹«a32»› --all
tool --api-key ‹«a32»›
tool --client-secret "‹«a40»›"
CONFIG SET requirepass "‹«p20»›"
curl -s https://h/ -u "$USER:‹«p16»›"
curl "https://h/v1?key=‹«a32»›&q=x"
curl -F 'token=‹«a32»›' https://h/
printf 'kim:%s\n' '‹«p16»›' | sudo chpasswd
read -r PASS <<< '‹«p16»›'
https://app.example.com/reset?reset_token=‹«a40»›
#define API_KEY "‹«a32»›"
char pass[] = "‹«p16»›";
WiFi.begin("home", "‹«p16»›");
jwt.sign(payload, "‹«a40»›")
gcloud secrets create x --data-file=- <<< "‹«a24»›"
ansible-vault encrypt_string '‹«p16»›' --name db_password
yarn config set npmAuthToken ‹«a36»›
runas /user:kim cmd # pw: ‹«p16»›
wpa_cli set_network 0 psk '"‹«p16»›"'
iwconfig wlan0 key s:‹«a13»›
cryptsetup open /dev/sda x <<< "‹«p16»›"
rclone config create r sftp pass ‹«a16»›
app+run+--x+mysql+-u+root+-p‹«a20»›+db
PASSWORD  '‹«p14»›'
PASSWORD	=	‹«p14»›
CREATE USER kim IDENTIFIED  BY  '‹«p14»›'
CREATE SECRET s (TYPE S3, KEY_ID 'x', SECRET '‹«a40»›')
echo ‹«p14»›  |  sudo  -S apt update
const pw = process.env.DB_PASSWORD || '‹«p14»›';
$CFG->dbpass    = '‹«p14»›';
mosquitto_passwd -b /etc/p kim ‹«p14»›
netlify env:set API_SECRET ‹«a32»›
ngrok config add-authtoken ‹2«a26»_«a21»›
nmcli con modify x wifi-sec.psk "‹«p14»›"
rabbitmqadmin -u kim -p ‹«p14»› list queues
bundle config set --local gems.example.com kim:‹«a16»›
gh secret set DB_PASSWORD <<< '‹«p16»›'
echo "‹«p14»›" | pass insert -e site/kim
gpg --batch --passphrase-fd 0 -d x.gpg <<< "‹«p14»›"
op signin --account x <<< '‹«p14»›'
echo -n '‹«p14»›' | kubectl create secret generic s --from-file=pw=/dev/stdin
printf '%s' '‹«p16»›' | gcloud secrets create s --data-file=-
echo "‹«p16»›" | vercel env add DB_PASSWORD production
sudo -S ls <<< "‹«p14»›"
openvpn --auth-user-pass <(printf 'kim:%s' '‹«p14»›')
passwordeval "echo ‹«a14»›"
ACL SETUSER kim on >‹«a16»› ~* +@all
AUTH kim ‹«a24»›
curl --cert client.pem:‹«a14»› https://h/
signtool sign /f c.pfx /p ‹«a14»› a.exe
security set-key-partition-list -S apple: -k '‹«a14»›' x.keychain
plink -ssh kim@h -pw ‹«a14»› ls
doppler secrets set API_TOKEN ‹«a32»›
openssl dgst -sha256 -hmac '‹«a32»›' f
reg add HKLM /v DefaultPassword /t REG_SZ /d ‹«a14»› /f
smbclient //srv/x '‹«p14»›' -U kim
api_key = os.getenv("API_KEY") or "‹«a32»›"
const pw = process.env.PW ?? '‹«p14»›';
String pw = System.getenv().getOrDefault("DB_PASSWORD", "‹«p14»›");
let pw = env::var("DB_PASSWORD").unwrap_or("‹«p14»›".to_string());
$pw = getenv('DB_PASSWORD') ?: '‹«p14»›';
parser.add_argument("--password", default="‹«p14»›")
await page.getByLabel('Password').fill('‹«p14»›')
cy.get('#password').type('‹«p14»›')
driver.find_element(By.ID, "password").send_keys("‹«p14»›")
fill_in 'Password', with: '‹«p14»›'
child.sendline('‹«a14»›')  # password
crypto.createHmac('sha256', '‹«a40»›')
Fernet(b"‹«a43»=›")
smtp.PlainAuth("", "kim@example.com", "‹«p14»›", "h")
jwt.sign({ id: 1 }, '‹«a32»›', { expiresIn: '1h' })
await user.type(screen.getByLabelText(/password/i), "‹«p14»›")
cy.get('input[type=password]').type('‹«p14»›{enter}')
pulumi config set dbPassword '‹«p14»›' --secret
r.auth("‹«p16»›")
await signInWithEmailAndPassword(auth, 'kim@example.com', '‹«p16»›')
assert login("kim", "‹«p16»›")
[System.Net.NetworkCredential]::new("kim", "‹«p16»›")
vault operator unseal ‹«a44»›
expo login -u kim -p '‹«p16»›'
mount -t cifs //h/s /m -o user=kim,pass=‹«p16»›
mysql --defaults-extra-file=<(printf "password=%s" '‹«p16»›')
getOrDefault("DB_PASSWORD", "‹«p16»›")
op item create "password[password]=‹«p16»›"
nsupdate -y hmac-sha512:k:‹«a43»=›
skopeo sync --src-creds kim:‹«p16»› a b
salt '*' shadow.set_password kim '‹«p16»›'
knife bootstrap h -x kim -P '‹«p16»›'
EXEC sp_addlogin 'kim', '‹«p16»›'
INSERT INTO users (name, password, role) VALUES ('kim', '‹«p16»›', 'admin')
PRAGMA key = '‹«p16»›'
conn.simple_bind_s("cn=kim,dc=example", "‹«p16»›")
paramiko.connect('h', 22, 'kim', '‹«p16»›')
A temporary password is generated for root@localhost: ‹«p16»›
Unseal Key 1: ‹«a44»›
drush user:password kim '‹«p16»›'
kubectl create secret generic s --from-literal=pw='‹«p16»›'
netdom join h /domain:d /passwordd:‹«p16»›
aws --profile x configure set aws_secret_access_key ‹«a40»›
virsh secret-set-value u ‹«a24»==›
User::create(['hash' => bcrypt('‹«p16»›')])
`
