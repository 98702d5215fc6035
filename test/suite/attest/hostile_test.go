package attest

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/attest"
)

// attempt is one try of a thief: it returns what was answered and the rule that should
// have objected.
type attempt func(t *testing.T, r *rig, n int) (status int, answer, rule string)

// kinds of hostile attempts, each tried several times with other values.
var kinds = map[string]attempt{
	"a served request, sent again": func(t *testing.T, r *rig, n int) (int, string, string) {
		c := r.machine(n)
		req := r.signing(r.credentials(r.victim(n)), r.nonce(c)).sign(t)
		if status, answer := r.post(c, req); status != 200 {
			t.Fatalf("the honest one: %s", describe(status, answer))
		}
		r.served++
		status, answer := r.post(c, req)
		return status, answer, "A2"
	},
	"a captured request with a new challenge": func(t *testing.T, r *rig, n int) (int, string, string) {
		c := r.machine(n)
		req := r.signing(r.credentials(r.victim(n)), r.nonce(c)).sign(t)
		req.Nonce = r.nonce(c)
		status, answer := r.post(c, req)
		return status, answer, "A5"
	},
	"a captured request with the thief's key": func(t *testing.T, r *rig, n int) (int, string, string) {
		c := r.machine(n)
		req := r.signing(r.credentials(r.victim(n)), r.nonce(c)).sign(t)
		req.Key = strings.Repeat("ab", 32)
		status, answer := r.post(c, req)
		return status, answer, "A5"
	},
	"signed for another cluster": func(t *testing.T, r *rig, n int) (int, string, string) {
		c := r.machine(n)
		s := r.signing(r.credentials(r.victim(n)), r.nonce(c))
		s.cluster = "sha256:" + strings.Repeat("0f", 32)
		req := s.sign(t)
		if n%2 == 0 { // told honestly, or as ours
			status, answer := r.post(c, req)
			return status, answer, "A3"
		}
		req.Cluster = r.hash
		status, answer := r.post(c, req)
		return status, answer, "A5"
	},
	"signed for another service that forwards it": func(t *testing.T, r *rig, n int) (int, string, string) {
		c := r.machine(n)
		s := r.signing(r.credentials(r.victim(n)), r.nonce(c))
		names := []string{"X-Autoscaler-Agent-Cluster", "X-Autoscaler-Agent-Key", "X-Autoscaler-Agent-Nonce"}
		s.drop = names[n%3:]
		if n%2 == 0 {
			s.add = map[string]string{"X-Vault-Aws-Iam-Server-Id": "vault.example.com"}
		}
		status, answer := r.post(c, s.sign(t))
		return status, answer, "A1"
	},
	"another account": func(t *testing.T, r *rig, n int) (int, string, string) {
		c := r.machine(n)
		keys := r.cloud.IssueForeignCredentials(fmt.Sprintf("%012d", 999000+n), "worker/"+r.victim(n), time.Hour)
		status, answer := r.post(c, r.signing(keys, r.nonce(c)).sign(t))
		return status, answer, "A6"
	},
	"another role": func(t *testing.T, r *rig, n int) (int, string, string) {
		c := r.machine(n)
		role := []string{"leader", "Worker", "workers", "worke", "worker-x", "admin"}[n%6]
		status, answer := r.post(c, r.signing(r.cloud.IssueCredentials(role+"/"+r.victim(n), time.Hour), r.nonce(c)).sign(t))
		return status, answer, "A7"
	},
	"a session that is no instance": func(t *testing.T, r *rig, n int) (int, string, string) {
		c := r.machine(n)
		id := r.victim(n)
		session := []string{"alice", strings.ToUpper(id), id + "0", id[:9], "i-", "botocore-session-1", id + "@x"}[n%7]
		status, answer := r.post(c, r.signing(r.cloud.IssueCredentials("worker/"+session, time.Hour), r.nonce(c)).sign(t))
		return status, answer, "A8"
	},
	"an instance of no managed group": func(t *testing.T, r *rig, n int) (int, string, string) {
		c := r.machine(n)
		others := r.instances("others")
		id := others[n%len(others)].ID
		if n%2 == 0 {
			id = fmt.Sprintf("i-%017x", n+1)
		}
		status, answer := r.post(c, r.signing(r.credentials(id), r.nonce(c)).sign(t))
		return status, answer, "A10"
	},
	"an old instance": func(t *testing.T, r *rig, n int) (int, string, string) {
		r.alter(r.victim(n), func(in *cluster.Instance) { in.Created = time.Now().Add(-time.Hour - time.Duration(n+1)*time.Minute) })
		status, answer := r.join(n, r.victim(n))
		return status, answer, "A11"
	},
	"an instance that is leaving": func(t *testing.T, r *rig, n int) (int, string, string) {
		r.alter(r.victim(n), func(in *cluster.Instance) {
			in.Phase = []cluster.Phase{cluster.PhaseDeleting, cluster.PhaseGone, cluster.PhaseStopped, cluster.PhaseFailed, cluster.PhaseUnknown}[n%5]
			in.Member = n%3 != 0
		})
		status, answer := r.join(n, r.victim(n))
		return status, answer, "A10"
	},
	"a pod on a machine that has joined": func(t *testing.T, r *rig, n int) (int, string, string) {
		known := attest.Joined{Node: "ip-10-0-0-1.ec2.internal"}
		if n%2 == 0 { // its Node was deleted, the certificate is remembered
			known = attest.Joined{Key: strings.Repeat("0", 64)}
		}
		r.marries(r.victim(n), known)
		status, answer := r.join(n, r.victim(n))
		return status, answer, "A12"
	},
	"a second key on a machine that has attested": func(t *testing.T, r *rig, n int) (int, string, string) {
		id := r.victim(n)
		if status, answer := r.join(n, id); status != 200 {
			t.Fatalf("the honest one: %s", describe(status, answer))
		}
		r.served++
		c := r.machine(n)
		s := r.signing(r.credentials(id), r.nonce(c))
		s.key = strings.Repeat("cd", 32)
		status, answer := r.post(c, s.sign(t))
		return status, answer, "A13"
	},
	"a clock that is wrong": func(t *testing.T, r *rig, n int) (int, string, string) {
		c := r.machine(n)
		s := r.signing(r.credentials(r.victim(n)), r.nonce(c))
		off := 5*time.Minute + time.Duration(n+2)*time.Second
		if n%2 == 0 {
			off = -off
		}
		s.at = s.at.Add(off)
		status, answer := r.post(c, s.sign(t))
		if strings.HasPrefix(answer, "A1") { // over midnight the scope is of another day
			return status, answer, "A1"
		}
		return status, answer, "A4"
	},
	"keys that are revoked, expired or guessed": func(t *testing.T, r *rig, n int) (int, string, string) {
		c := r.machine(n)
		keys := r.credentials(r.victim(n))
		switch n % 4 {
		case 0:
			r.cloud.RevokeKey(keys.AccessKeyID)
		case 1:
			r.cloud.ExpireKey(keys.AccessKeyID)
		case 2:
			keys.SecretAccessKey += "x"
		case 3:
			keys.SessionToken = keys.SessionToken[1:] + "0"
		}
		status, answer := r.post(c, r.signing(keys, r.nonce(c)).sign(t))
		return status, answer, "A5"
	},
	"a long-lived key of a user": func(t *testing.T, r *rig, n int) (int, string, string) {
		c := r.machine(n)
		s := r.signing(r.cloud.RootCredentials(), r.nonce(c))
		if n%2 == 0 {
			s.keys.SessionToken = r.credentials(r.victim(n)).SessionToken
		}
		status, answer := r.post(c, s.sign(t))
		return status, answer, "A1"
	},
	"signed for something else than STS here": func(t *testing.T, r *rig, n int) (int, string, string) {
		c := r.machine(n)
		s := r.signing(r.credentials(r.victim(n)), r.nonce(c))
		rule := "A5"
		switch n % 7 {
		case 0:
			s.service, rule = "iam", "A1"
		case 1:
			s.region, rule = "eu-west-1", "A1"
		case 2:
			s.host = "sts.amazonaws.com"
		case 3:
			s.body = "Action=AssumeRole&Version=2011-06-15"
		case 4:
			s.method = http.MethodGet
		case 5:
			s.query = "?Action=GetCallerIdentity&Version=2011-06-15"
		case 6:
			s.host = "sts." + r.cloud.Region() + ".evil.example"
		}
		status, answer := r.post(c, s.sign(t))
		return status, answer, rule
	},
	"a challenge of the thief's own": func(t *testing.T, r *rig, n int) (int, string, string) {
		c := r.machine(n)
		nonce := r.nonce(c)
		digit := "0"
		if nonce[n%80] == '0' {
			digit = "1"
		}
		status, answer := r.post(c, r.signing(r.credentials(r.victim(n)), nonce[:n%80]+digit+nonce[n%80+1:]).sign(t))
		return status, answer, "A2"
	},
	"a request that is none": func(t *testing.T, r *rig, n int) (int, string, string) {
		c := r.machine(n)
		good, err := json.Marshal(r.signing(r.credentials(r.victim(n)), r.nonce(c)).sign(t))
		if err != nil {
			t.Fatal(err)
		}
		raw := [][]byte{
			{}, []byte("null"), []byte("[]"), good[:len(good)-1], append(good, good...), bytes.Repeat([]byte("{"), 9000),
			append(good, bytes.Repeat([]byte(" "), 9000)...),
			bytes.Replace(good, []byte(`{`), []byte(`{"host":"evil.example",`), 1),
			bytes.Replace(good, []byte(`{`), []byte(`{"url":"http://169.254.169.254/",`), 1),
			bytes.Replace(good, []byte(`"nonce":"`), []byte(`"nonce":"\r\nX-Evil: 1`), 1),
			bytes.Replace(good, []byte(`SignedHeaders=`), []byte(`SignedHeaders=x-evil;`), 1),
			bytes.Replace(good, []byte(`"authorization":"`), []byte(`"authorization":"Bearer `), 1),
		}[n%12]
		status, answer := r.post(c, raw)
		return status, answer, "A1"
	},
	"an STS that is not itself": func(t *testing.T, r *rig, n int) (int, string, string) {
		id := r.victim(n)
		identity := "<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws:sts::123456789012:assumed-role/worker/" + id +
			"</Arn><UserId>AROAX:" + id + "</UserId><Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>"
		r.pretend(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			switch n % 6 {
			case 0:
				http.Redirect(w, q, "http://"+q.RemoteAddr+"/", http.StatusTemporaryRedirect)
			case 1:
				w.WriteHeader(http.StatusForbidden)
				_, _ = io.WriteString(w, identity)
			case 2:
				_, _ = io.WriteString(w, strings.ReplaceAll(identity, "GetCallerIdentityResponse", "AssumeRoleResponse"))
			case 3:
				_, _ = io.WriteString(w, identity[:len(identity)/2])
			case 4:
				_, _ = io.WriteString(w, "{}")
			case 5:
				_, _ = io.WriteString(w, strings.Repeat(" ", 17<<10)+identity)
			}
		}))
		defer r.pretend(nil)
		status, answer := r.join(n, id)
		return status, answer, "A5"
	},
	"an instance whose group cannot be read": func(t *testing.T, r *rig, n int) (int, string, string) {
		r.mu.Lock()
		r.change = func(groups []cluster.NodeGroup) {
			for i := range groups {
				if n%2 == 0 {
					groups[i].Stale = "throttled"
				} else {
					groups[i].ReadAt = time.Now().Add(-time.Hour)
				}
			}
		}
		r.mu.Unlock()
		status, answer := r.join(n, r.victim(n))
		return status, answer, "A9"
	},
}

// TestHostileMachines: none of some two hundred attempts is served, and each is refused by
// its own rule.
func TestHostileMachines(t *testing.T) {
	const tries = 12
	r := newRig(t, tries, nil)
	attempts := 0
	for name, try := range kinds {
		t.Run(name, func(t *testing.T) {
			for n := range tries {
				r.reset(t)
				before, served := len(r.tokens()), r.served
				status, answer, rule := try(t, r, n)
				attempts++
				got, _, _ := strings.Cut(answer, " ")
				if status == 200 || got != rule {
					t.Errorf("attempt %d: %s, want %s", n, describe(status, answer), rule)
				}
				if after := len(r.tokens()); after != before+r.served-served {
					t.Errorf("attempt %d: %d tokens after %d", n, after, before)
				}
			}
		})
	}
	if len(kinds) < 12 || attempts < 100 {
		t.Errorf("%d attempts of %d kinds", attempts, len(kinds))
	}
	t.Logf("%d attempts of %d kinds, 0 served", attempts, len(kinds))
}

// TestNoOtherTransport: the listener speaks TLS 1.3 alone, and two paths.
func TestNoOtherTransport(t *testing.T) {
	r := newRig(t, 1, nil)
	old := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: r.ca, ServerName: attest.ServerName, MaxVersion: tls.VersionTLS12}}}
	if _, err := old.Get("https://" + r.address + "/v1/challenge"); err == nil {
		t.Error("TLS 1.2 is spoken")
	}
	if res, err := http.Get("http://" + r.address + "/v1/challenge"); err == nil && res.StatusCode == 200 {
		t.Error("plain HTTP is spoken")
	}
	c := r.machine(1)
	for path, want := range map[string]int{"/": 404, "/v1": 404, "/v1/join": 405, "/v1/challenge": 200, "/debug/pprof/": 404, "/metrics": 404} {
		res, err := c.Get("https://" + r.address + path)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, res.StatusCode, want)
		}
	}
}

// TestOneSourceIsHeldBack: an address that asks without end is told to wait, and another
// one is served meanwhile.
func TestOneSourceIsHeldBack(t *testing.T) {
	r := newRig(t, 1, nil)
	c, held := r.machine(1), 0
	for range 60 {
		res, err := c.Get("https://" + r.address + "/v1/challenge")
		if err != nil { // its allowance of new connections is used up as well
			break
		}
		if res.StatusCode == http.StatusTooManyRequests && res.Header.Get("Retry-After") != "" {
			held++
		}
	}
	if held < 10 {
		t.Error("sixty requests at once were all answered")
	}
	if status, answer := r.join(2, r.instances("workers")[0].ID); status != 200 {
		t.Errorf("another address: %s", describe(status, answer))
	}
}

// TestTheJournalTellsNoSecret: neither tokens nor what was signed is logged.
func TestTheJournalTellsNoSecret(t *testing.T) {
	r := newRig(t, 2, nil)
	var secrets []string
	for n, in := range r.instances("workers") {
		c := r.machine(n)
		keys := r.credentials(in.ID)
		req := r.signing(keys, r.nonce(c)).sign(t)
		if n == 0 {
			req.Nonce = r.nonce(c)
		}
		_, answer := r.post(c, req)
		secrets = append(secrets, req.SecurityToken, req.Authorization, keys.SecretAccessKey, answer)
	}
	for _, s := range r.tokens() {
		secrets = append(secrets, string(s.Data["token-secret"]))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range secrets {
		if len(s) > 8 && strings.Contains(r.journal.String(), s) {
			t.Errorf("the journal tells %q", s[:8])
		}
	}
	if !strings.Contains(r.journal.String(), "rule=A5") || !strings.Contains(r.journal.String(), "a machine has attested") {
		t.Errorf("the journal:\n%s", r.journal)
	}
}

// victim is the n-th instance of the managed group.
func (r *rig) victim(n int) string { return r.members[n%len(r.members)].ID }

func (r *rig) alter(id string, change func(*cluster.Instance)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.change = func(groups []cluster.NodeGroup) {
		if _, in := attest.Find(groups, id); in != nil {
			change(in)
		}
	}
}

func (r *rig) marries(id string, known attest.Joined) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range r.members {
		if in.ID == id {
			r.joined[providerID(in)] = known
		}
	}
}

func (r *rig) pretend(h http.Handler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replies = h
}

// reset makes the world as it was, with a listener that remembers nothing.
func (r *rig) reset(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	r.change, r.replies = nil, nil
	clear(r.joined)
	r.mu.Unlock()
	r.freshPool()
	r.again(t)
}
