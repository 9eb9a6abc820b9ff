wattlock/v1
-> scrypt 2XRSptXTx5eN2mgVqYqB+g 10
38Dg5f3T5WV8Nhsu0vx+16mDxeAe561iehiazm/9KZg
=> data-key kGZqFOJsO/qPlJiXWK3qpA
XSqDm6mjureL43iuLwTQJ9rNw0n1zPJOD7u/Aaoo0PMvBx8Y8tN2uEe1kkvnwh7J

=> metadata RVP8ERdbXeJrbig5ulDz+A
UibMdGAtCHafcH6EdKO9sxbGLWM4IVWdMvbbA0TZZrAvE/nZEin/cw09WJGwsDUG
rWnQWEHh/iRkR35kQqkgkz8RzzJrQPHf3KIjVMNNrsQ
--- MYegGswEcQLvAAvZ/cJUFym63qQSYwH0OqiNHx66o4g
!ЧќHpґ4¤РКЮЩЯs›АОҐЅQ'‘•lЏl>ESУЫVЈ3дb¶ЛЮHyF эш=ЄЋ<·Sa‰УгQ=ЄбoР