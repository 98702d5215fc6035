# attest asks the leader for a token for this machine alone (docs/attested-join.md). It
# signs a request that the leader sends to STS (Signature Version 4). HMAC is computed here,
# by the shell's own arithmetic and printf: no secret is in an argument list.
oct() { # hex digits -> escapes of printf %b, in $O
  O='' h=$1
  while [ -n "$h" ]; do
    r=${h#??} v=$((0x${h%"$r"})) h=$r
    O="$O\\0$((v / 64))$((v / 8 % 8))$((v % 8))"
  done
}
hex() { od -An -v -tx1 | tr -d ' \n'; }
sha() { sha256sum | cut -c 1-64; }
hmac() { # key in hex; message on standard input; result in hex
  k=$1 i='' o='' n=0
  while [ "$n" -lt 64 ]; do
    v=0
    if [ -n "$k" ]; then r=${k#??} v=$((0x${k%"$r"})) k=$r; fi
    a=$((v ^ 54)) b=$((v ^ 92)) n=$((n + 1))
    i="$i\\0$((a / 64))$((a / 8 % 8))$((a % 8))" o="$o\\0$((b / 64))$((b / 8 % 8))$((b % 8))"
  done
  oct "$({ printf '%b' "$i"; cat; } | sha)"
  printf '%b' "$o$O" | sha
}
# The listener has a name of its own, which no DNS knows, whatever the leader's address is.
leader() {
  curl -sS --connect-timeout 5 --max-time 25 --noproxy '*' --cacert "$dir/ca.crt" --connect-to "::$at" \
    -w '\n%{http_code}' "$@" "https://autoscaler-agent-attest.invalid/v1/$path"
}
attest_once() { # answer in $answer, status in $status
  role=$(fact iam/security-credentials/) || die reason=attest-role
  creds=$(fact "iam/security-credentials/${role%% *}") || die reason=attest-role
  cred() { printf '%s' "$creds" | tr ',{}' '\n\n\n' | sed -n 's/^ *"'"$1"'" *: *"\([^"\\]*\)".*/\1/p'; }
  id=$(cred AccessKeyId) token=$(cred Token)
  case $id$token in '' | *[!A-Za-z0-9+/=_.-]*) die reason=attest-role ;; esac
  path='challenge'
  nonce=$(leader) || return 1
  status=${nonce##*
} nonce=${nonce%%
*}
  if [ "$status" != 200 ]; then answer=$nonce; return 0; fi
  now=$(date -u +%Y%m%dT%H%M%SZ) cluster=${JOIN_CERT_HASH%%,*} suffix=''
  day=${now%T*} type=application/x-www-form-urlencoded
  case $REGION in cn-*) suffix=.cn ;; esac
  names='content-type;host;x-amz-date;x-amz-security-token;x-autoscaler-agent-cluster;x-autoscaler-agent-key;x-autoscaler-agent-nonce'
  want=$(printf 'Action=GetCallerIdentity&Version=2011-06-15' | sha)
  canonical=$(printf 'POST\n/\n\ncontent-type:%s\nhost:sts.%s.amazonaws.com%s\nx-amz-date:%s\nx-amz-security-token:%s\nx-autoscaler-agent-cluster:%s\nx-autoscaler-agent-key:%s\nx-autoscaler-agent-nonce:%s\n\n%s\n%s' \
    "$type" "$REGION" "$suffix" "$now" "$token" "$cluster" "$spki" "$nonce" "$names" "$want" | sha)
  scope=$day/$REGION/sts/aws4_request
  secret=$(cred SecretAccessKey)
  s=$(printf 'AWS4%s' "$secret" | hex)
  for m in "$day" "$REGION" sts aws4_request "AWS4-HMAC-SHA256
$now
$scope
$canonical"; do s=$(printf '%s' "$m" | hmac "$s"); done
  path='join'
  answer=$(printf '{"date":"%s","securityToken":"%s","authorization":"AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s","cluster":"%s","key":"%s","nonce":"%s"}' \
    "$now" "$token" "$id" "$scope" "$names" "$s" "$cluster" "$spki" "$nonce" | leader -H 'Content-Type: application/json' --data-binary @-) || return 1
  status=${answer##*
} answer=${answer%
*}
}
# attest_key makes the kubelet's key where there is none, and tells its hash in $spki: the
# kubelet takes the key that it finds there, and the token works for no other.
attest_key() {
  pki=${JOIN_PKI:-/var/lib/kubelet/pki}
  key=$pki/kubelet-client.key.tmp
  mkdir -p "$pki"
  if command -v openssl >/dev/null 2>&1; then
    [ -s "$key" ] || { openssl ecparam -name prime256v1 -genkey -noout -out "$key.new" && mv "$key.new" "$key"; } || die reason=attest-key
    spki=$(openssl pkey -in "$key" -pubout -outform DER | sha)
  else
    [ -s "$key" ] || { rm -f "$key.new" && ssh-keygen -q -t ecdsa -b 256 -m PEM -N '' -f "$key.new" && rm -f "$key.new.pub" && mv "$key.new" "$key"; } || die reason=attest-key
    spki=$(ssh-keygen -e -m PKCS8 -f "$key" | sed '/^-/d' | base64 -d | sha)
  fi
}
# leaders are the listeners: each one of the list, and each address of a name that has several.
leaders() {
  for e in $(printf '%s' "$JOIN_ATTEST" | tr ',' ' '); do
    case $(getent ahosts "${e%:*}" 2>/dev/null | cut -d ' ' -f 1 | sort -u | tr '\n' ' ') in
      *' '*' ')
        getent ahosts "${e%:*}" | cut -d ' ' -f 1 | sort -u | sed -e '/:/s/.*/[&]/' -e "s/\$/:${e##*:}/"
        ;;
      *) echo "$e" ;;
    esac
  done
}
# attest_all asks one leader after the other until one has judged: of several one acts, and the
# others answer A0 or not at all.
attest_all() {
  for at in $(leaders); do
    status=0 answer=''
    attest_once || status=0
    JOIN_TOKEN=$(printf '%s\n' "$answer" | sed -n 's/^JOIN_TOKEN=\([a-z0-9]\{6\}\.[a-z0-9]\{16\}\)$/\1/p')
    case $status:$answer in 0:* | *:A0*) ;; *) return 0 ;; esac
  done
}
attest() {
  phase attest
  attest_key
  left=${JOIN_ATTEST_TRIES:-60} said=''
  while :; do
    attest_all
    if [ "$status" = 200 ] && [ -n "$JOIN_TOKEN" ]; then phase token; return 0; fi
    why=attest-unreachable
    case $answer in A[0-9]*) why="attest rule=${answer%% *}" ;; esac
    left=$((left - 1))
    if late 60; then left=0; fi
    case $left:$status in 0:* | *:400) die "reason=$why" ;; esac
    [ "$why" = "$said" ] || { said=$why; phase "attest left=$left reason=${why#attest rule=}"; }
    sleep "${JOIN_PAUSE:-10}"
  done
}
