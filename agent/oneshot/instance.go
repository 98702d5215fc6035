package oneshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/nojoin"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/console"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/lint"
)

// InstanceExplanation says how far a machine came on its way to the cluster, and why not further.
type InstanceExplanation struct {
	Instance string `json:"instance"`
	nojoin.Conclusion
	// Where, Likely and Marks are what the console alone tells.
	Where  string         `json:"where,omitempty"`
	Likely string         `json:"likely,omitempty"`
	Marks  []console.Mark `json:"marks,omitempty"`
	// UserData is what the user data of its group holds.
	UserData *nojoin.UserData `json:"userData,omitempty"`
}

// ExplainInstance concludes from what the running agent knows of a machine, from its user data,
// which is tried from here, and from its console. id is a provider ID or the cloud's own ID.
func ExplainInstance(ctx context.Context, cfg config.Config, known nojoin.Known, id string) InstanceExplanation {
	x := InstanceExplanation{Instance: id}
	facts := nojoin.Facts{Known: known}
	if known.ID != "" {
		id = string(known.ID)
	}
	if text, err := clients.Console(ctx, cfg, id); err != nil {
		facts.ConsoleFault = err.Error()
	} else {
		d := console.Diagnose(text, known.Phase == cluster.PhasePending)
		facts.Console, x.Where, x.Likely, x.Marks = &d, d.Where, d.Likely, d.Marks
	}
	if known.Group != "" {
		facts.UserData = userDataOf(ctx, cfg, known)
		x.UserData = facts.UserData
	}
	x.Conclusion = nojoin.Conclude(facts)
	return x
}

// userDataOf reads and tries the user data of an instance.
func userDataOf(ctx context.Context, cfg config.Config, known nojoin.Known) *nojoin.UserData {
	settings, err := cfg.OpenGroupsFile(logrus.NewEntry(logrus.StandardLogger()))
	if err != nil {
		return &nojoin.UserData{Unread: err.Error()}
	}
	text, from, err := clients.UserData(ctx, cfg, settings.Section, &cluster.NodeGroup{ID: known.Group, Provider: known.Provider}, known.ID)
	if err != nil {
		return &nojoin.UserData{From: from, Unread: err.Error()}
	}
	held, err := userdata.Read(text)
	if err != nil {
		return foreign(text, from)
	}
	id, _, _ := strings.Cut(held.Join.Token, ".")
	out := &nojoin.UserData{From: from, Endpoint: held.Join.Endpoint, TokenID: id, Attest: held.Join.Attest, PerServer: held.PerServer, Kubernetes: held.KubernetesVersion}
	_, fault := bootstrap.TryUserData(ctx, held)
	out.Fault, out.Remedy = fault.Text, fault.Remedy
	if fault.Untried != "" {
		out.Unread = from + " was not tried to the end: " + fault.Untried
	}
	return out
}

// foreign is user data that autoscaler-agent userdata render did not make: what its linter knows of it.
func foreign(text []byte, from string) *nojoin.UserData {
	out := &nojoin.UserData{From: from, Foreign: true}
	if len(bytes.TrimSpace(text)) == 0 {
		out.Fault, out.Remedy = "its user data ("+from+") is empty: the machine installs nothing and joins no cluster", "autoscaler-agent userdata render; put it into the launch template or the group's file"
		return out
	}
	for _, f := range lint.Check(text, lint.Options{}) {
		if f.StopsJoin() {
			out.Fault, out.Remedy = fmt.Sprintf("its user data (%s) is not the agent's, and no machine joins with it: line %d: %s", from, f.Line, f.Text), "correct it (autoscaler-agent userdata lint), or use autoscaler-agent userdata render"
			break
		}
	}
	return out
}

// KnownInstance is what a look at the cluster and the cloud says of an instance, for a command that
// no running agent answers. What cannot be read is told to log, and is not known.
func KnownInstance(ctx context.Context, cfg config.Config, log *logrus.Logger, id string) nojoin.Known {
	seen, err := lookOnce(ctx, cfg, log)
	if err != nil {
		log.WithField("why", err.Error()).Warn("the cluster or the cloud was not read: nothing is known of its Node and its group")
		return nojoin.Known{Unread: err.Error()}
	}
	known := nojoin.KnownOf(&seen.snapshot, id, seen.policy.MaxNodeProvisionTime)
	if err := judgeRequest(ctx, cfg, log, &known); err != nil {
		log.WithField("why", err.Error()).Warn("the certificate requests were not read")
		known.Unread = "the certificate requests: " + err.Error()
	}
	return known
}

// judgeRequest judges the newest certificate request of the instance, as the running agent would.
func judgeRequest(ctx context.Context, cfg config.Config, log *logrus.Logger, known *nojoin.Known) error {
	_, client, err := clients.Typed(ctx, cfg)
	if err != nil {
		return err
	}
	name, err := requestOf(ctx, client, known)
	if name == "" {
		return err
	}
	x, err := ExplainCSR(ctx, cfg, log, name)
	if err != nil {
		return err
	}
	kind := "serving certificate"
	if x.Signer == certificatesv1.KubeAPIServerClientKubeletSignerName {
		kind = "client certificate"
	}
	known.Request = &nojoin.Request{Name: x.Name, Node: x.Node, Kind: kind, Do: x.Do, Rule: x.Rule, Why: x.Why, At: x.Created}
	if x.Settled == "approved" || x.Settled == "issued" {
		known.Request.Do = "approve"
	}
	return nil
}

// requestOf is the newest certificate request of the instance; empty: none.
func requestOf(ctx context.Context, client *kube.Client, known *nojoin.Known) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	list, err := client.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", errors.Join(errors.New("the certificate requests cannot be listed"), err)
	}
	name, at := "", time.Time{}
	for i := range list.Items {
		csr := &list.Items[i]
		req := rules.Request{Signer: csr.Spec.SignerName, Username: csr.Spec.Username, Parsed: rules.Parse(csr.Spec.Request)}
		if known.Asks(req.Node()) && !csr.CreationTimestamp.Time.Before(at) {
			name, at = csr.Name, csr.CreationTimestamp.Time
		}
	}
	return name, nil
}
