package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

func TestTokensForSingleMachines(t *testing.T) {
	client := fake.NewClientset()
	cfg := Config{TokenTTL: 24 * time.Hour, TokenGroups: []string{"system:bootstrappers:kubeadm:default-node-token"}}
	mint := TokensFor(NewPool(kubetest.Client(client)), cfg)
	tokens := map[string]bool{}
	for _, name := range []string{"workers-a", "workers-b"} {
		token, err := mint(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		tokens[token] = true
	}
	list, err := client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 || len(tokens) != 2 {
		t.Fatalf("%d Secrets, %d tokens, %v", len(list.Items), len(tokens), err)
	}
	for _, s := range list.Items {
		if !tokens[string(s.Data[keyID])+"."+string(s.Data[keySecret])] {
			t.Errorf("Secret %s is none of the tokens", s.Name)
		}
		if left := time.Until(expires(&s)); left > machineTokenTTL || left < machineTokenTTL-time.Minute {
			t.Errorf("it lives %s", left)
		}
		if !strings.Contains(string(s.Data[keyDescription]), "workers-") {
			t.Errorf("description %q", s.Data[keyDescription])
		}
		// The service that publishes a token must not take one of these for its own.
		if s.Labels[TokenLabel] != machineLabelValue {
			t.Errorf("it is labelled as the published token: %v", s.Labels)
		}
	}
}

// TestTokenEndsWithTheJoin: the token of one machine ends once its Node is Ready, and not
// before, not for an older Node of the name, not by an agent that does not lead, and not
// that of another machine.
func TestTokenEndsWithTheJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leads atomic.Bool
		leads.Store(true)
		lead := func(_ *Config, d *Deps) {
			d.MayAct = func() (bool, string) { return leads.Load(), "another one does" }
			kubetest.Fake(d.Client).PrependReactor("get", "nodes", func(a k8stesting.Action) (bool, runtime.Object, error) {
				return a.(k8stesting.GetAction).GetName() == "unreadable", nil, errors.New("later")
			})
		}
		journal := bubble(t, "https://api.example.com:6443", lead, func(client *fake.Clientset, s *Service) {
			nodes, secrets := client.CoreV1().Nodes(), client.CoreV1().Secrets("kube-system")
			for n, name := range []string{"joins", "late", "old", "never", "unreadable"} {
				made, err := mint(poolID(publishedSlots+n), time.Now(), s.cfg)
				if err != nil {
					t.Fatal(err)
				}
				made.Labels, made.Annotations = map[string]string{TokenLabel: machineLabelValue}, map[string]string{MachineAnnotation: name}
				made.CreationTimestamp = metav1.Now()
				if _, err := secrets.Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			node := func(name string, age time.Duration, ready corev1.ConditionStatus) {
				n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Now().Add(-age))},
					Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
				_ = nodes.Delete(t.Context(), name, metav1.DeleteOptions{}) // there may be none
				if _, err := nodes.Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			live := func() string {
				list, err := secrets.List(t.Context(), metav1.ListOptions{LabelSelector: TokenLabel + "=" + machineLabelValue})
				if err != nil {
					t.Fatal(err)
				}
				var out []string
				for i := range list.Items {
					if usable(&list.Items[i], time.Now(), Config{}) == "" {
						out = append(out, list.Items[i].Annotations[MachineAnnotation])
					}
				}
				slices.Sort(out)
				return strings.Join(out, " ")
			}
			leads.Store(false)
			node("joins", 0, corev1.ConditionTrue)
			node("late", 0, corev1.ConditionFalse)
			node("old", time.Hour, corev1.ConditionTrue)
			if wait(2 * time.Minute); live() != "joins late never old unreadable" {
				t.Errorf("an agent that does not lead has revoked: %s are left", live())
			}
			leads.Store(true)
			if wait(2 * time.Minute); live() != "late never old unreadable" {
				t.Errorf("%s are left", live())
			}
			node("late", 0, corev1.ConditionTrue)
			if wait(2 * time.Minute); live() != "never old unreadable" {
				t.Errorf("%s are left", live())
			}
		})
		if n := strings.Count(journal, "token revoked"); n != 2 {
			t.Errorf("%d lines of the journal tell of it:\n%s", n, journal)
		}
	})
}

// TestTokenOfAnInstanceEndsWithTheJoin: the token of a machine that has attested ends when the
// instance has a Ready Node, whatever of its names the Node has; an operator's token for an
// instance stays until its end.
func TestTokenOfAnInstanceEndsWithTheJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := map[string]string{"aws:///a/i-1": "ip-10-0-0-1", "aws:///a/i-3": "ip-10-0-0-3"}
		journal := bubble(t, "https://api.example.com:6443", func(_ *Config, d *Deps) {
			d.NodeOf = func(id string) string { return nodes[id] }
		}, func(client *fake.Clientset, s *Service) {
			secrets := client.CoreV1().Secrets("kube-system")
			for n := range 3 {
				made, err := mint(poolID(publishedSlots+n), time.Now(), s.cfg)
				if err != nil {
					t.Fatal(err)
				}
				id := fmt.Sprintf("aws:///a/i-%d", n+1)
				made.Labels, made.Annotations = map[string]string{TokenLabel: machineLabelValue}, map[string]string{InstanceAnnotation: id, MachineAnnotation: "i-1"}
				if n == 2 {
					made.Annotations[StandingAnnotation] = "true"
				}
				made.CreationTimestamp = metav1.Now()
				if _, err := secrets.Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("ip-10-0-0-%d", n+1), CreationTimestamp: metav1.Now()},
					Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
				if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			wait(learnEvery + 2*time.Minute)
			list, err := secrets.List(t.Context(), metav1.ListOptions{LabelSelector: TokenLabel + "=" + machineLabelValue})
			if err != nil || len(list.Items) != 2 || list.Items[0].Annotations[InstanceAnnotation] != "aws:///a/i-2" {
				t.Errorf("%d are left, %v", len(list.Items), err)
			}
		})
		if n := strings.Count(journal, "token revoked"); n != 1 {
			t.Errorf("%d lines of the journal tell of it:\n%s", n, journal)
		}
	})
}

// TestPoolOfSingleMachines: an ID is used once at a time, whoever made its token; where all
// are in use the next machine is held with the reason, until one has joined or ended.
func TestPoolOfSingleMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		stamp(client)
		cfg := Config{TokenTTL: 24 * time.Hour, TokenGroups: []string{WorkersGroup}}
		secrets := client.CoreV1().Secrets("kube-system")
		theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: secretPrefix + poolID(50)}, Type: corev1.SecretTypeOpaque}
		if _, err := secrets.Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		const slots = poolSize - publishedSlots - 1 // one is somebody else's
		ids := map[string]bool{}
		var leader func(context.Context, string) (string, error)
		for n := range slots {
			if n%40 == 0 {
				leader = TokensFor(NewPool(kubetest.Client(client)), cfg) // a restart: it knows nothing of the others
			}
			token, err := leader(t.Context(), fmt.Sprintf("machine-%d", n))
			if err != nil {
				t.Fatalf("machine %d: %v", n, err)
			}
			ids[token[:idLength]] = true
		}
		if len(ids) != slots || ids[poolID(50)] {
			t.Errorf("%d machines share %d IDs", slots, len(ids))
		}
		for id := range ids {
			if !inPool(id) || !slices.Contains(PoolNames(), secretPrefix+id) {
				t.Errorf("ID %s is not of the pool", id)
			}
		}
		if _, err := leader(t.Context(), "one more"); err == nil || !strings.Contains(err.Error(), "all 124 join tokens for single machines are in use") {
			t.Errorf("one more: %v", err)
		}
		time.Sleep(machineTokenTTL + 2*time.Minute)
		if _, err := leader(t.Context(), "one more"); err != nil {
			t.Errorf("after the tokens have ended: %v", err)
		}
		if got, err := secrets.Get(t.Context(), theirs.Name, metav1.GetOptions{}); err != nil || got.Type != corev1.SecretTypeOpaque {
			t.Errorf("the foreign Secret: %v %v", got, err)
		}
	})
}

// TestTokenThatNeverEnds: an ID whose token somebody gave an end in 68 years is free again.
func TestTokenThatNeverEnds(t *testing.T) {
	client := fake.NewClientset()
	cfg := Config{TokenTTL: time.Hour, TokenGroups: []string{"system:bootstrappers:autoscaler-agent:workers"}}
	pool := NewPool(kubetest.Client(client))
	if _, _, err := TokenForAttested(pool, cfg)(t.Context(), Attested{Instance: "i", Machine: "w", Key: "k"}); err != nil {
		t.Fatal(err)
	}
	secrets := client.CoreV1().Secrets(metav1.NamespaceSystem)
	list, err := secrets.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatal(list, err)
	}
	s := &list.Items[0]
	id := strings.TrimPrefix(s.Name, secretPrefix)
	for _, end := range []time.Duration{maxTokenTTL, 68 * 365 * 24 * time.Hour} {
		s.Data[keyExpiration] = expiry(time.Now().Add(end))
		if _, err := secrets.Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if free, err := pool.readSlot(t.Context(), id, time.Now()); err != nil || free != (end > maxTokenTTL) {
			t.Errorf("a token that ends in %s: free %t, %v", end, free, err)
		}
	}
}

func TestPoolBounds(t *testing.T) {
	for id, want := range map[string]bool{"asa000": true, "asa127": true, "asa128": false, "asa0a0": false, "asa00": false, "abcdef": false, "": false, "asa0001": false} {
		if inPool(id) != want {
			t.Errorf("inPool(%q) is %t", id, !want)
		}
	}
}

// TestKeyOfAnotherLeadersToken: a new leader knows with which key an instance attested at the old
// one, as long as its token lives; what cannot be read is an error and not "none".
func TestKeyOfAnotherLeadersToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		cfg := Config{TokenTTL: time.Hour, TokenGroups: []string{"system:bootstrappers:autoscaler-agent:workers"}}
		old, next := NewPool(kubetest.Client(client)), NewPool(kubetest.Client(client))
		ask := func(p *Pool, instance string) string {
			t.Helper()
			key, err := p.KeyOf(t.Context(), instance)
			if err != nil {
				t.Fatal(err)
			}
			return key
		}
		mint := TokenForAttested(old, cfg)
		const first, second = "aws:///a/i-1", "aws:///a/i-2"
		if key := ask(next, first); key != "" {
			t.Errorf("a key of nothing: %s", key)
		}
		token, _, err := mint(t.Context(), Attested{Instance: first, Machine: "w-1", Key: "k1"})
		if err != nil {
			t.Fatal(err)
		}
		next.Forget() // it leads now
		if ask(next, first) != "k1" || ask(next, second) != "" {
			t.Errorf("the new leader knows %q and %q", ask(next, first), ask(next, second))
		}
		// The machine asks again, at the new leader, and gets its own token again.
		if again, _, err := TokenForAttested(next, cfg)(t.Context(), Attested{Instance: first, Machine: "w-1", Key: "k1"}); err != nil || again != token {
			t.Errorf("%v: another token for the same machine", err)
		}
		reads := 0
		client.PrependReactor("get", "secrets", func(k8stesting.Action) (bool, runtime.Object, error) { reads++; return false, nil, nil })
		if ask(next, first) != "k1" || reads > 0 {
			t.Errorf("%d reads for what is known", reads)
		}
		wait(attestedTokenTTL + time.Minute)
		if key := ask(next, first); key != "" {
			t.Errorf("the token has ended, and its key %s stands", key)
		}
		client.PrependReactor("get", "secrets", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("etcd is away") })
		next.Forget()
		if key, err := next.KeyOf(t.Context(), first); err == nil {
			t.Errorf("%q without a read", key)
		}
	})
}
