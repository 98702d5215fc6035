package doctor

import (
	"crypto/tls"
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
)

// certificateWarning is how long before its end the attest listener's certificate is told of.
const certificateWarning = 30 * 24 * time.Hour

// checkAttest looks at the certificate of the attest listener.
func checkAttest(cfg config.Config) []Finding {
	a := cfg.AttestConfig()
	if a.Listen == "" || !cfg.Bootstrap.Enabled {
		return nil
	}
	const about, remedy = "attested join", "docs/attested-join.md tells how the certificate is made"
	pair, err := tls.LoadX509KeyPair(a.CertFile, a.KeyFile)
	if err != nil {
		return []Finding{{Level: LevelError, About: about, Text: "no machine can attest: " + err.Error(), Remedy: remedy}}
	}
	end, names := pair.Leaf.NotAfter, append([]string{}, pair.Leaf.DNSNames...)
	for _, ip := range pair.Leaf.IPAddresses {
		names = append(names, ip.String())
	}
	text := fmt.Sprintf("machines of roles %v in account %s attest at %s; its certificate is for %v and ends at %s", a.Roles, a.Account, a.Listen, names, end.UTC().Format(time.RFC3339))
	switch left := time.Until(end); {
	case left <= 0:
		return []Finding{{Level: LevelError, About: about, Text: text, Remedy: remedy}}
	case left < certificateWarning:
		return []Finding{{Level: LevelWarning, About: about, Text: text, Remedy: remedy}}
	}
	return []Finding{{Level: LevelOK, About: about, Text: text}}
}
