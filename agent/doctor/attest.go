package doctor

import (
	"crypto/tls"
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/attest"
)

// certificateWarning is how long before its end the attest listener's certificate is told of.
const certificateWarning = 30 * 24 * time.Hour

// checkAttest looks at the certificate of the attest listener. authorities are the cluster's
// CA in PEM, empty where they are not on this machine.
func checkAttest(cfg config.Config, authorities []byte, now time.Time) []Finding {
	a := cfg.AttestConfig()
	if a.Listen == "" || !cfg.Bootstrap.Enabled {
		return nil
	}
	const about = "attested join"
	remedy := "sudo autoscaler-agent install --renew makes it anew where the cluster's CA has its key on this machine; see why autoscaler-agent-renew.timer did not: journalctl -u autoscaler-agent-renew"
	if a.CertFile != attest.DefaultFile {
		remedy = "the file is your own: make it anew; docs/attested-join.md tells how"
	}
	pair, err := tls.LoadX509KeyPair(a.CertFile, a.KeyFile)
	if err != nil {
		return []Finding{{Level: LevelError, About: about, Text: "no machine can attest: " + err.Error(), Remedy: remedy}}
	}
	end := pair.Leaf.NotAfter
	text := fmt.Sprintf("machines of roles %v in account %s attest at %s; its certificate ends at %s", a.Roles, a.Account, a.Listen, end.UTC().Format(time.RFC3339))
	// While a certificate serves, its end alone is no error.
	switch why := attest.Judge(pair, authorities, now); {
	case why != "" && (!end.After(now) || attest.Judge(pair, authorities, pair.Leaf.NotBefore) != ""):
		return []Finding{{Level: LevelError, About: about, Text: "no machine can attest at " + a.Listen + ": the certificate " + a.CertFile + ": " + why, Remedy: remedy}}
	case end.Sub(now) < certificateWarning:
		return []Finding{{Level: LevelWarning, About: about, Text: text, Remedy: remedy}}
	}
	return []Finding{{Level: LevelOK, About: about, Text: text}}
}
