wattlock/v1
-> X25519 p1/ozuWYmquM/mG5y4BiTefk0N21j/r9vfRSxj2kHik
IpCfDp8pF45IIyZwg66jYhu5veh3fGWAyZLsBS5AMlQ
=> data-key 1pir8ldP98Svscm9+ZA6jA
Ls/mjrkGcjn6MdxqvqwdRUn3vvwY0Fd9cKYwYaHmO1hRrTr5/aP7v36G39DM+3tm

=> metadata RlWnT2WiTM0VifQnMpJYTA
KAXNrxmoci3mw2XTI0xRU/ayUGTeY8mr1jZKDT85nIBHDUPuaCcKUuE2vBLbt5pq
eq+1SGaf2U9ZOuj9P8xacEHQi/cgqz0TrlsnF6zpMHs
--- oSACB85IYYZ/UpP95zJB5asBIKU2f6GBzRyRPfH8g/Q
‚y4å	®ß€&#“/UŒDN˜=ê°vÁC°W[K(¯\rì$!ìBÖýc†m›âŒžB)åPÛã3Š_ÌíÇyv$G&ÚO‹œÄ&!ø¥âS‡+š%ÏæYcÏÂ°<ÍÈ$u*ÏùôÊ”s:³qä\¡gÏhc@¸VúrÍ®¶(4,b‹¾Y8˜
½½L´ªÿÄîÒL6‹5/ Až½Ïƒ/