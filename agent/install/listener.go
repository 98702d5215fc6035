package install

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/attest"
	"github.com/autoscaler-agent/autoscaler-agent/internal/atomicfile"
)

// authorityKeyFile is the key of attest.AuthorityFile.
const authorityKeyFile = "/etc/kubernetes/pki/ca.key"

// listener is the step to the certificate of the attest listener, where agent.env or the
// operator's settings ask for one. It is made here, by root, because no signer of Kubernetes
// gives out server certificates but for Nodes, and the agent must not read the CA's key.
func (h Host) listener(set []Setting, now time.Time) ([]Step, error) {
	const about = "listener"
	has, err := h.effective(set)
	if err != nil {
		return nil, err
	}
	const prefix = config.Prefix + "_BOOTSTRAP_ATTEST_"
	if has[prefix+"LISTEN"] == "" {
		return nil, nil
	}
	for _, name := range []string{"CERT_FILE", "KEY_FILE"} {
		if file := cmp.Or(has[prefix+name], attest.DefaultFile); file != attest.DefaultFile {
			return []Step{present(about, "%s is your own: it stays as it is", file)}, nil
		}
	}
	authorities, err := h.readIf(attest.AuthorityFile)
	if err != nil {
		return nil, err
	}
	key, err := h.readIf(authorityKeyFile)
	if err != nil {
		return nil, err
	}
	why := "there is none"
	if data, err := h.readIf(attest.DefaultFile); err != nil {
		return nil, err
	} else if data != nil {
		if pair, err := tls.X509KeyPair(data, data); err != nil {
			why = "the file is damaged"
		} else if why = attest.Judge(pair, authorities, now); why == "" {
			return []Step{present(about, "%s is good until %s", attest.DefaultFile, pair.Leaf.NotAfter.UTC().Format(time.DateOnly))}, nil
		}
	}
	if authorities == nil || key == nil {
		return []Step{present(about, "%s cannot be made here (%s): the cluster's CA has no key on this machine; docs/attested-join.md tells what to do", attest.DefaultFile, why)}, nil
	}
	return []Step{change(about, fmt.Sprintf("have the cluster's CA sign %s for the attest listener, for a year (%s)", attest.DefaultFile, why), func(context.Context) error {
		data, err := attest.Issue(authorities, key, now)
		if err != nil {
			return err
		}
		if _, err := atomicfile.Write(h.path(attest.DefaultFile), data, 0o640); err != nil {
			return err
		}
		return h.own(attest.DefaultFile)
	})}, nil
}

// effective are the variables of agent.env, and those of set that it does not set.
func (h Host) effective(set []Setting) (map[string]string, error) {
	data, err := h.readIf(envFile)
	if err != nil {
		return nil, err
	}
	vars, err := config.ParseEnvFile(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", envFile, err)
	}
	has := map[string]string{}
	for _, v := range append(pairs(set), vars...) {
		has[v[0]] = v[1]
	}
	return has, nil
}
