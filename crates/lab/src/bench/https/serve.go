// A web server of Go's standard library: serve DIRECTORY PORT SUITE
package main

import (
	"crypto/tls"
	"log"
	"net/http"
	"os"
)

func main() {
	directory, port, suite := os.Args[1], os.Args[2], os.Args[3]
	config := &tls.Config{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12}
	switch suite {
	case "ECDHE-RSA-AES128-SHA256":
		config.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256}
	case "ECDHE-RSA-AES256-GCM-SHA384":
		config.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384}
	case "TLS_AES_256_GCM_SHA384":
		// Go chooses among the client's suites by itself.
		config.MinVersion, config.MaxVersion = tls.VersionTLS13, tls.VersionTLS13
	default:
		log.Fatal("Go has no ", suite)
	}
	files := http.FileServer(http.Dir(directory + "/pages"))
	server := &http.Server{
		Addr:      "127.0.0.1:" + port,
		TLSConfig: config,
		// HTTP/1.1, as the others.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		Handler: http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
			// Otherwise it would guess the type from each page's first bytes.
			answer.Header().Set("Content-Type", "application/octet-stream")
			files.ServeHTTP(answer, request)
		}),
	}
	log.Fatal(server.ListenAndServeTLS(directory+"/cert.pem", directory+"/key.pem"))
}
