package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// list has AWS's form, with some of its columns.
const list = `"FormatVersion","v1.0"
"Disclaimer","for informational purposes"
"Publication Date","2026-11-20T00:00:00Z"
"Version","1"
"OfferCode","AmazonEC2"
"SKU","TermType","Unit","PricePerUnit","Currency","Instance Type","Tenancy","Operating System","CapacityStatus","Pre Installed S/W"
"A","OnDemand","Hrs","0.0960000000","USD","m5.large","Shared","Linux","Used","NA"
"B","OnDemand","Hrs","0.0480000000","USD","m5.medium","Shared","Linux","Used","NA"
"C","OnDemand","Hrs","0.1880000000","USD","m5.large","Shared","Windows","Used","NA"
"D","Reserved","Hrs","0.0600000000","USD","m5.large","Shared","Linux","Used","NA"
"E","OnDemand","Hrs","0.1000000000","USD","m5.large","Dedicated","Linux","Used","NA"
"F","OnDemand","Hrs","0.0000000000","USD","m5.large","Shared","Linux","AllocatedCapacityReservation","NA"
"G","OnDemand","Hrs","0.0850000000","USD","c5.large","Shared","Linux","Used","NA"
`

func TestRenew(t *testing.T) {
	for name, test := range map[string]struct{ list, old, want, fault string }{
		"renewed":       {list: list, old: "c5 large=0.09\n", want: "2026-11-20.\n# `make prices` renews this file from the list itself.\nc5 large=0.085\nm5 medium=0.048 large=0.096\n"},
		"fewer types":   {list: list, old: "c5 large=1 a=1 b=1 c=1\n", fault: "has 3 types, and the table 4"},
		"no header":     {list: "not found", fault: "no header"},
		"other columns": {list: "\"SKU\",\"TermType\"\n", fault: "no column"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(test.list)) }))
		table := filepath.Join(t.TempDir(), "ondemand.txt")
		if err := os.WriteFile(table, []byte(test.old), 0o644); err != nil {
			t.Fatal(err)
		}
		err := run(t.Context(), table, server.URL)
		server.Close()
		now, _ := os.ReadFile(table)
		switch {
		case test.fault == "" && (err != nil || !strings.HasSuffix(string(now), test.want)):
			t.Errorf("%s: %v\n%s", name, err, now)
		case test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault) || string(now) != test.old):
			t.Errorf("%s: %v\n%s", name, err, now)
		}
	}
}
