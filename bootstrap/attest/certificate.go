package attest

import (
	"crypto/tls"
	"fmt"
	"os"
	"time"
)

// certificate returns the files' content as it is now.
func (s *Server) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.certMu.Lock()
	defer s.certMu.Unlock()
	var at [2]time.Time
	for i, name := range []string{s.cfg.CertFile, s.cfg.KeyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return s.cert, orNil(s.cert, fmt.Errorf("read the listener's certificate: %w", err))
		}
		at[i] = info.ModTime()
	}
	if s.cert != nil && at == s.certRead {
		return s.cert, nil
	}
	pair, err := tls.LoadX509KeyPair(s.cfg.CertFile, s.cfg.KeyFile)
	if err != nil {
		return s.cert, orNil(s.cert, fmt.Errorf("read the listener's certificate: %w", err))
	}
	s.cert, s.certRead = &pair, at
	return s.cert, nil
}

// orNil drops the error where an older certificate still serves.
func orNil(old *tls.Certificate, err error) error {
	if old != nil {
		return nil
	}
	return err
}
