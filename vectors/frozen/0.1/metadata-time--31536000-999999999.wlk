wattlock/v1
-> X25519 Rcvo5yhIGXDzRFbjN9eJA/Hdyralrn5E+Atic20vkT8
7kN7guQPZ+xkVr+AWKaBXSzr6ie3HMfU6Z3+LfWAx2g
=> data-key OhV0IM0jZYLE7dz7Pc3zRg
ii2fXPiXgwpTUyK18gbJgdD9vZorNIPoSpnAKY/9nLn6/daskQSRO+xW1CdHOIcr

=> metadata X4geavZO88oXmxs5VxXq5A
u5lzBmj35UotgiM6yevuuQh7WbY7X3f0D2dvYXBCMCJ+nU+Nsek7wUn0We6XWJ76
Y5Bf5lKQjbKpt348k/FyFif5rGCUYnyD+Ah6C/XGGNc
--- ZSxXHepF43mOz8BCuyLqYzQZkucYoAZAAP0trAAyMg8
%–C°$…[üMl†ólðÒBáÏ +pcÉ“u…â”zNJ•À¾~µ+#ø“JÍãöÞ“®Î0P Äòi³°?ü¿doØÍ]ŽpD¿‚—tv¹˜ì¼½®Ø9ºÕ¬Û»e¨\Ÿyí¡û)=q÷m)8Âü‘G¯K¹‚káƒáùzPWï›ç8‰-õ¹Œæ‡Wø˜x§’S×Øj~¶1ä™phZÌìHl>­Jõ„/´Ïp