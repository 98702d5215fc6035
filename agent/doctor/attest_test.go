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

// TestCheckAttest: a certificate of the listener that is missing, over or near its end is
// told of.
func TestCheckAttest(t *testing.T) {
	for left, want := range map[time.Duration]Level{365 * 24 * time.Hour: LevelOK, 24 * time.Hour: LevelWarning, -time.Hour: LevelError, 0: LevelError} {
		dir := t.TempDir()
		cfg := config.Config{}
		cfg.Bootstrap.Enabled = true
		cfg.Bootstrap.Attest = attest.Config{Listen: ":6444", CertFile: filepath.Join(dir, "crt"), KeyFile: filepath.Join(dir, "key")}
		if left != 0 { // else there is none
			writePair(t, cfg.Bootstrap.Attest, left)
		}
		found := checkAttest(cfg)
		if len(found) != 1 || found[0].Level != want || (want == LevelOK) != (found[0].Remedy == "") || left != 0 && !strings.Contains(found[0].Text, "leader.example.com") {
			t.Errorf("%s: %+v, want %s", left, found, want)
		}
	}
	if found := checkAttest(config.Config{}); found != nil {
		t.Errorf("without a listener: %v", found)
	}
}

func writePair(t *testing.T, a attest.Config, left time.Duration) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"leader.example.com"}, NotAfter: time.Now().Add(left)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*pem.Block{a.CertFile: {Type: "CERTIFICATE", Bytes: der}, a.KeyFile: {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
