package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/attest"
)

// TestCheckAttest: a certificate of the listener that is missing, over, near its end, of
// another name or of another cluster is told of.
func TestCheckAttest(t *testing.T) {
	now := time.Now()
	ca, key := authority(t, now)
	other, _ := authority(t, now)
	good, err := attest.Issue(ca, key, now)
	if err != nil {
		t.Fatal(err)
	}
	year := 365 * 24 * time.Hour
	for name, c := range map[string]struct {
		at    time.Time
		ca    []byte
		file  string
		level Level
		want  string
	}{
		"good":               {now, ca, string(good), LevelOK, "ends at"},
		"good, CA elsewhere": {now, nil, string(good), LevelOK, "ends at"},
		"due for renewal":    {now.Add(year * 3 / 4), ca, string(good), LevelOK, "ends at"},
		"not renewed":        {now.Add(year - 24*time.Hour), ca, string(good), LevelWarning, "ends at"},
		"over":               {now.Add(year + time.Hour), ca, string(good), LevelError, "it ended at"},
		"another cluster":    {now, other, string(good), LevelError, "this cluster's CA did not sign it"},
		"another name":       {now, ca, string(ca) + string(key), LevelError, "it is not for the name " + attest.ServerName},
		"missing":            {now, ca, "", LevelError, "no such file"},
		"damaged":            {now, ca, string(good[:200]), LevelError, "failed to find any PEM data"},
	} {
		cfg := config.Config{}
		cfg.Bootstrap.Enabled = true
		file := filepath.Join(t.TempDir(), "attest.pem")
		cfg.Bootstrap.Attest = attest.Config{Listen: ":6444", CertFile: file, KeyFile: file}
		if c.file != "" {
			if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		found := checkAttest(cfg, c.ca, c.at)
		if len(found) != 1 || found[0].Level != c.level || (c.level == LevelOK) != (found[0].Remedy == "") || !strings.Contains(found[0].Text, c.want) {
			t.Errorf("%s: %+v, want %s with %q", name, found, c.level, c.want)
		}
	}
	if found := checkAttest(config.Config{}, nil, now); found != nil {
		t.Errorf("without a listener: %v", found)
	}
}

// authority is a cluster's CA with its key.
func authority(t *testing.T, now time.Time) (certificate, key []byte) {
	t.Helper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"kubernetes"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(10 * 365 * 24 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &signer.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(signer)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
}
