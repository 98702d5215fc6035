package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/sirupsen/logrus"
)

// MessageID is the journal's MESSAGE_ID of all lines about one rule: 128 bits that never
// change, made from the rule's own ID, so that no table has to be kept. The journal
// catalog (packaging/autoscaler-agent.catalog) has an entry for each: `journalctl -x`.
func MessageID(rule string) string {
	sum := sha256.Sum256([]byte("autoscaler-agent rule " + rule))
	sum[6] = sum[6]&0x0f | 0x80 // a UUID of version 8 (RFC 9562): made by a rule of our own
	sum[8] = sum[8]&0x3f | 0x80
	return hex.EncodeToString(sum[:16])
}

// messageID is that of an entry: "" for one that no rule decided.
func messageID(e *logrus.Entry) string {
	rule := fmt.Sprint(e.Data["rule"])
	if e.Data["rule"] == nil || rule == "" {
		return ""
	}
	return MessageID(rule)
}
