wattlock/v1
-> X25519 2G9s2wyXZdIW6MzSDudX5aHhSBDFtQcAHhoWxJ4N5io
spweawK2WWeRxjP6jVtrDcgcad4quAZ8u68EcDgsSBU
=> data-key gnzQ9O9toJPpmm4arcqrXA
sUAgaMlQW3KXHuc1iQ++ZMK5+HvlC7dlHoSYI7FlJVhJbGYPtpwLnYAq6xdRajru

=> metadata ej2i83Pq/0YNOshk3VCPxA
+xJrn7qOsCN8GFr0vdFDGAFW13+ZzqB+TmNbDLD949Oj6I+icBtmrFZqM6hqO686
dcNdYg6Y7xz3ZF219aQr4JXVxrMyClVDz35BzuxGcy0
--- i/8F1BsP0OHadp6R0UZpfn/xH7b6gW2d96gnEMAXyTw
Òµ¬Ýþ³N5|™m²V°M/ô>;kG—ê‰oËÄøž`i™míýh°À§R¯J>UÇF¥’óH¤p8lÂî$‚X